"""The results of `parse_ib_sysfs` for single files; whole trees are under fixtures/."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.model.facts import DeviceKind, Medium, Port, PortState
from topology.model.ids import Id, IdKind
from topology.sources.infiniband.sysfs import RocePort, parse_ib_sysfs

TREE = {
    "mlx5_0/node_guid": "9c05:9103:0000:b001\n",
    "mlx5_0/sys_image_guid": "9c05:9103:0000:b001\n",
    "mlx5_0/ports/1/state": "4: ACTIVE\n",
    "mlx5_0/ports/1/phys_state": "5: LinkUp\n",
    "mlx5_0/ports/1/rate": "200 Gb/sec (2X NDR)\n",
    "mlx5_0/ports/1/link_layer": "InfiniBand\n",
    "mlx5_0/ports/1/gids/0": "fe80:0000:0000:0000:9c05:9103:0000:b002\n",
    "mlx5_0/device/net": "ib0\n",
}


def with_file(path: str, text: str | None) -> dict[str, str]:
    changed = {key: value for key, value in TREE.items() if key != path}
    return changed if text is None else changed | {path: text}


def test_it_identifies_the_node_by_its_guids() -> None:
    (host,) = parse_ib_sysfs(TREE).devices
    (port,) = host.ports
    assert (host.kind, host.name) == (DeviceKind.HOST, "")
    assert host.ids == (
        Id(IdKind.NODE_GUID, "9c0591030000b001"),
        Id(IdKind.SYSTEM_IMAGE_GUID, "9c0591030000b001"),
    )
    assert (port.name, port.rdma_device, port.state) == ("mlx5_0/1", "mlx5_0", PortState.UP)
    assert port.ids == (
        Id(IdKind.NODE_GUID, "9c0591030000b001", "1"),
        Id(IdKind.PORT_GUID, "9c0591030000b002"),
    )


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("200 Gb/sec (2X NDR)", 200_000_000_000),
        ("2.5 Gb/sec (1X SDR)", 2_500_000_000),
        ("40 Gb/sec (4X FDR10)", 40_000_000_000),
        ("56 Gb/sec (4X FDR)", 56_000_000_000),
        ("800 Gb/sec (4X XDR)", 800_000_000_000),
    ],
)
def test_it_reads_the_rate(text: str, bps: int) -> None:
    (host,) = parse_ib_sysfs(with_file("mlx5_0/ports/1/rate", text)).devices
    assert host.ports[0].rate_bps == bps


@pytest.mark.parametrize(
    ("physical", "logical", "state"),
    [
        pytest.param("5: LinkUp", "1: DOWN", PortState.UP, id="the physical state counts"),
        pytest.param(
            "2: Polling", "4: ACTIVE", PortState.DOWN, id="no link, in spite of the logical state"
        ),
        pytest.param("3: Disabled", "1: DOWN", PortState.DOWN, id="switched off"),
        pytest.param(None, "2: INIT", PortState.UP, id="no subnet manager yet"),
        pytest.param(None, "1: DOWN", PortState.DOWN, id="the logical state only"),
        pytest.param(None, "0: NOP", PortState.UNKNOWN, id="a state without a meaning"),
        pytest.param(None, None, PortState.UNKNOWN, id="neither file"),
    ],
)
def test_it_returns_a_link_and_its_rate_only_if_it_is_up(
    physical: str | None, logical: str | None, state: PortState
) -> None:
    tree = with_file("mlx5_0/ports/1/phys_state", physical)
    tree |= {"mlx5_0/ports/1/state": logical} if logical else {}
    if logical is None:
        del tree["mlx5_0/ports/1/state"]
    found = parse_ib_sysfs(tree)
    (port,) = found.devices[0].ports
    assert (port.state, port.rate_bps is not None) == (state, state is PortState.UP)
    assert not found.errors


@pytest.mark.parametrize("text", ["Unknown\n", "Unspecified\n"])
def test_it_names_a_device_without_a_link_layer_as_one_of_a_cloud(text: str) -> None:
    found = parse_ib_sysfs(with_file("mlx5_0/ports/1/link_layer", text))
    assert (found.cloud_devices, found.errors, found.roce_ports) == (("mlx5_0",), (), ())
    assert found.devices[0].ports == ()


def roce(gid: str, **files: str) -> RocePort:
    tree = with_file("mlx5_0/ports/1/link_layer", "Ethernet\n") | {
        "mlx5_0/ports/1/gids/0": gid,
        **{f"mlx5_0/{path}": text for path, text in files.items()},
    }
    found = parse_ib_sysfs(tree)
    assert found.devices[0].ports == ()
    (port,) = found.roce_ports
    return port


def test_it_leaves_ethernet_ports_to_their_interfaces() -> None:
    files = {"device/net": "eth2\neth3\n", "ports/1/gid_attrs/ndevs/0": "eth2\n"}
    port = roce("fe80:0000:0000:0000:bace:f6ff:fe00:0007", **files)
    assert port == RocePort(
        Port(
            "mlx5_0/1",
            (Id(IdKind.MAC, "b8:ce:f6:00:00:07"),),
            medium=Medium.ETHERNET,
            state=PortState.UP,
            rate_bps=200_000_000_000,
            rdma_device="mlx5_0",
        ),
        "9c0591030000b001",
        ("eth2", "eth3"),
        "eth2",
    )


@pytest.mark.parametrize(
    ("gid", "mac"),
    [
        ("fe80:0000:0000:0000:0216:3eff:fe00:0001", "00:16:3e:00:00:01"),
        ("fe80:0000:0000:0000:FC16:3EFF:FEAB:00FF", "fe:16:3e:ab:00:ff"),
        ("fe80:0000:0000:0000:b83f:d203:0011:aab0", None),
        ("2001:0db8:0000:0000:0216:3eff:fe00:0001", None),
        ("0000:0000:0000:0000:0000:0000:0000:0000", None),
        ("fe80:0000:0000:0000:0316:3eff:fe00:0001", None),
    ],
    ids=["EUI-64", "capitals", "a GUID", "another prefix", "no GID", "a group address"],
)
def test_it_reads_the_address_of_a_default_gid(gid: str, mac: str | None) -> None:
    assert [id_.value for id_ in roce(gid).port.ids] == ([mac] if mac else [])


def test_interfaces_over_infiniband_have_no_cables() -> None:
    assert parse_ib_sysfs(TREE).roce_ports == ()


def test_it_finds_a_device_that_only_has_files_of_a_port() -> None:
    found = parse_ib_sysfs({"mlx5_0/ports/1/phys_state": "5: LinkUp\n"})
    assert [port.name for port in found.devices[0].ports] == ["mlx5_0/1"]


# The logical state is read only without the physical one; any text is a valid interface name.
@pytest.mark.parametrize(
    "path", sorted(TREE.keys() - {"mlx5_0/device/net", "mlx5_0/ports/1/state"})
)
def test_bad_content_is_named_with_its_file(path: str) -> None:
    (error,) = parse_ib_sysfs(with_file(path, "\x1b[31mnonsense"), source="/sys").errors
    assert error.source == f"/sys/{path}"
    assert str(error) == f"/sys/{path}: unexpected content: '\\x1b[31mnonsense'"


def test_a_device_with_an_odd_name_is_shown_safely() -> None:
    (error,) = parse_ib_sysfs({"mlx\x1b[31m/node_guid": "none"}, source="/sys").errors
    assert str(error) == "/sys/mlx\\x1b[31m/node_guid: unexpected content: 'none'"


def test_many_devices_cost_no_more_than_each_one() -> None:
    # Ten thousand devices would take very long if each searched the files of all.
    files = {f"mlx5_{k}/ports/1/phys_state": "5: LinkUp\n" for k in range(10_000)}
    assert len(parse_ib_sysfs(files).devices[0].ports) == 10_000


@pytest.mark.parametrize("path", sorted(TREE))
def test_a_missing_file_is_normal(path: str) -> None:
    assert parse_ib_sysfs(with_file(path, None)).errors == ()


@given(st.dictionaries(st.sampled_from(sorted(TREE)) | st.text(max_size=20), st.text(max_size=40)))
def test_it_never_raises_on_any_files(files: dict[str, str]) -> None:
    found = parse_ib_sysfs(files)
    assert len(found.devices) <= 1
