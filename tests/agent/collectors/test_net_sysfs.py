"""The ports of network cards, from fixture sysfs trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.collectors import net_sysfs
from agent.collectors.probe import CollectedFacts, SourceAbsent
from agent.settings import AgentSettings
from tests.agent.fakes import FakeRunner
from tests.agent.nodes import card, plant, settings_for, virtual
from topology.model.errors import CollectError
from topology.model.facts import (
    Device,
    DeviceKind,
    GpuDistance,
    Medium,
    Neighbor,
    Port,
    PortState,
    Source,
)
from topology.model.ids import Id, IdKind

MAC = "b8:ce:f6:00:00:01"
PF = "0000:03:00.0"


def collect(root: Path, *interfaces: str) -> CollectedFacts:
    return net_sysfs.collect(settings_for(root, interfaces=interfaces), FakeRunner())


def only_port(root: Path) -> Port:
    (port,) = collect(root).ports
    return port


def test_it_returns_all_that_sysfs_shows_of_a_port(tmp_path: Path) -> None:
    plant(tmp_path, card("eth0", PF, MAC))
    plant(tmp_path, {f"devices/pci0000:00/0000:00:01.0/{PF}/infiniband/mlx5_0/node_type": "1: CA"})
    found = collect(tmp_path)
    assert found == CollectedFacts(
        ids=frozenset({Id(IdKind.MAC, MAC)}),
        ports=(
            Port(
                name="eth0",
                ids=(Id(IdKind.IFNAME, "eth0"), Id(IdKind.MAC, MAC)),
                medium=Medium.ETHERNET,
                state=PortState.UP,
                rate_bps=25_000_000_000,
                rdma_device="mlx5_0",
                pci_address=PF,
            ),
        ),
    )


@pytest.mark.parametrize(
    ("files", "state", "rate_bps"),
    [
        pytest.param({"carrier": "0"}, PortState.DOWN, None, id="no carrier, so its rate is none"),
        pytest.param({"carrier": "", "operstate": "down"}, PortState.DOWN, None, id="switched off"),
        pytest.param(
            {"carrier": "", "operstate": "lowerlayerdown"}, PortState.DOWN, None, id="dormant"
        ),
        pytest.param({"carrier": "", "operstate": "up"}, PortState.UP, 25 * 10**9, id="no carrier"),
        pytest.param(
            {"carrier": "", "operstate": "unknown"}, PortState.UNKNOWN, None, id="unknown"
        ),
        pytest.param({"carrier": "", "operstate": ""}, PortState.UNKNOWN, None, id="silent"),
        pytest.param({"speed": "-1"}, PortState.UP, None, id="a virtio speed of -1"),
        pytest.param({"speed": "4294967295"}, PortState.UP, None, id="the -1 of old kernels"),
        pytest.param({"speed": ""}, PortState.UP, None, id="a refused speed"),
        pytest.param({"speed": "fast"}, PortState.UP, None, id="a speed that is no number"),
    ],
)
def test_it_derives_state_and_rate(
    tmp_path: Path, files: dict[str, str], state: PortState, rate_bps: int | None
) -> None:
    port = only_port(plant(tmp_path, card("eth0", PF, MAC, **files)))
    assert (port.state, port.rate_bps) == (state, rate_bps)


@pytest.mark.parametrize(
    ("files", "patterns", "names"),
    [
        pytest.param(card("eth0", PF, MAC), (), ["eth0"], id="a card's port"),
        pytest.param(virtual("veth1", MAC), (), [], id="no virtual interface"),
        pytest.param(
            virtual("veth1", MAC), ("eth*", "veth?"), ["veth1"], id="a wanted virtual one"
        ),
        pytest.param(virtual("veth1", MAC), ("VETH*",), [], id="no pattern of another case"),
        pytest.param(
            card("eth0", PF, MAC), ("veth*",), ["eth0"], id="physical ones with any pattern"
        ),
        pytest.param(card("ib0", PF, MAC, type="32\n"), ("*",), [], id="no IPoIB interface"),
        pytest.param(card("lo", PF, MAC, type="772\n"), ("*",), [], id="no loopback"),
        pytest.param(card("odd", PF, MAC, type=""), ("*",), [], id="nothing of unknown type"),
        *(
            pytest.param(card("eth0", PF, MAC, phys_port_name=label), ("*",), [], id=f"no {label}")
            for label in ("pf0vf3", "c1pf0sf88", "pf0hpf", "pf1")
        ),
        *(
            pytest.param(card("eth0", PF, MAC, phys_port_name=label), (), ["eth0"], id=f"{label}")
            for label in ("p0", "0", "p1s0")
        ),
        pytest.param(
            card("eth10", "0000:04:00.0", MAC) | card("eth9", PF, MAC),
            (),
            ["eth9", "eth10"],
            id="ports in natural order",
        ),
    ],
)
def test_it_takes(
    tmp_path: Path, files: dict[str, str], patterns: tuple[str, ...], names: list[str]
) -> None:
    plant(tmp_path, files)
    found = collect(tmp_path, *patterns)
    assert [port.name for port in found.ports] == names
    every = {path.split("/")[2] for path in files if path.startswith("class/net/")}
    assert found.excluded == every - set(names)


def test_it_leaves_out_virtual_functions(tmp_path: Path) -> None:
    plant(tmp_path, card("eth0v0", "0000:03:00.2", MAC))
    device = tmp_path / "devices/pci0000:00/0000:00:01.0/0000:03:00.2"
    (device / "physfn").symlink_to("..")
    assert collect(tmp_path, "*").ports == ()


def test_it_gives_a_bond_slave_its_own_address_and_its_master(tmp_path: Path) -> None:
    own, of_bond = "b8:ce:f6:00:00:07", "b8:ce:f6:00:00:01"
    plant(tmp_path, card("eth1", PF, of_bond))
    plant(
        tmp_path, virtual("bond0", of_bond) | {"devices/virtual/net/bond0/bonding/mode": "802.3ad"}
    )
    base = tmp_path / "class/net/eth1"
    plant(base, {"bonding_slave/perm_hwaddr": own, "master": "->/x/net/bond0"})
    port = only_port(tmp_path)
    assert port.bond_master == "bond0"
    assert Id(IdKind.MAC, own) in port.ids
    assert Id(IdKind.MAC, of_bond) not in port.ids


def bonded(root: Path, proc: str | None) -> AgentSettings:
    """Return settings of a node with a bond whose slaves all show its address."""
    of_bond = "b8:ce:f6:00:00:01"
    for number, name in enumerate(("eth0", "eth1")):
        plant(root, card(name, f"0000:03:00.{number}", of_bond))
        plant(root / f"class/net/{name}", {"master": "->/x/net/bond0"})
    plant(root, virtual("bond0", of_bond) | {"devices/virtual/net/bond0/bonding/mode": "802.3ad"})
    if proc is not None:
        plant(root / "proc", {"net/bonding/bond0": proc})
    return settings_for(root, proc_root=root / "proc")


@pytest.mark.parametrize(
    ("proc", "macs"),
    [
        pytest.param(
            "Slave Interface: eth1\nPermanent HW addr: b8:ce:f6:00:00:07\n",
            ["b8:ce:f6:00:00:07"],
            id="from proc, for slaves that proc lists",
        ),
        pytest.param(None, [], id="no address without proc"),
    ],
)
def test_it_finds_the_addresses_of_slaves_without_one_in_sysfs(
    tmp_path: Path, proc: str | None, macs: list[str]
) -> None:
    found = net_sysfs.collect(bonded(tmp_path, proc), FakeRunner())
    assert [one.value for one in sorted(found.ids)] == macs


def test_it_gives_both_ports_of_a_bonded_card_its_only_rdma_device(tmp_path: Path) -> None:
    settings = bonded(tmp_path, None)
    first = "devices/pci0000:00/0000:00:01.0/0000:03:00.0"
    plant(tmp_path, {f"{first}/infiniband/mlx5_bond_0/node_type": "1: CA"})
    plant(tmp_path, card("eth2", "0000:04:00.0", MAC))
    found = net_sysfs.collect(settings, FakeRunner())
    assert {port.name: port.rdma_device for port in found.ports} == {
        "eth0": "mlx5_bond_0",
        "eth1": "mlx5_bond_0",
        "eth2": None,
    }


def test_it_tolerates_attributes_that_cannot_be_read(tmp_path: Path) -> None:
    plant(tmp_path, card("eth0", PF, MAC, carrier="", speed=""))
    for name in ("carrier", "speed", "phys_port_name"):
        # A folder answers a read with an error, as drivers do with EINVAL and EOPNOTSUPP.
        (tmp_path / "class/net/eth0" / name).mkdir()
    port = only_port(tmp_path)
    assert (port.state, port.rate_bps) == (PortState.UP, None)


def test_it_does_not_treat_a_bridge_as_a_bond(tmp_path: Path) -> None:
    plant(tmp_path, card("eth1", PF, MAC) | virtual("br0", MAC))
    plant(tmp_path / "class/net/eth1", {"master": "->/x/net/br0"})
    assert only_port(tmp_path).bond_master is None


@pytest.mark.parametrize(
    "address", ["00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "01:80:c2:00:00:0e", "nonsense", ""]
)
def test_it_ignores_an_address_that_identifies_nothing(tmp_path: Path, address: str) -> None:
    plant(tmp_path, card("eth0", PF, address))
    assert collect(tmp_path).ids == frozenset()


def test_it_keeps_physical_ports_when_a_pattern_matches_too_many(tmp_path: Path) -> None:
    files = card("zz0", PF, MAC)
    for k in range(net_sysfs.MAX_PORTS + 3):
        files |= {f"class/net/v{k}/type": "1"}
    found = collect(plant(tmp_path, files), "v*")
    assert len(found.ports) == net_sysfs.MAX_PORTS
    assert found.ports[0].name == "zz0"
    assert "narrow the patterns of --interfaces" in found.note


def test_it_notes_that_there_is_no_port(tmp_path: Path) -> None:
    found = collect(plant(tmp_path, virtual("veth1", MAC)))
    assert found.is_empty
    assert found.note == "no physical network port"


def test_it_fails_without_sysfs_and_explains_it_beforehand(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "absent")
    with pytest.raises(CollectError, match="is sysfs mounted"):
        net_sysfs.collect(settings, FakeRunner())
    assert "is sysfs mounted" in str(net_sysfs.find_absence(settings, FakeRunner()))


def test_it_has_no_data_if_only_hcas_were_captured(tmp_path: Path) -> None:
    settings = settings_for(plant(tmp_path, {"class/infiniband/mlx5_0/node_type": "1: CA"}))
    with pytest.raises(SourceAbsent, match="class/net"):
        net_sysfs.collect(settings, FakeRunner())
    assert "class/net" in str(net_sysfs.find_absence(settings, FakeRunner()))


def test_it_restores_its_ports_without_their_neighbors(tmp_path: Path) -> None:
    plant(tmp_path, card("eth0", PF, MAC))
    found = collect(tmp_path)
    neighbor = Neighbor((), "leaf", (), "swp1", Source.LLDP)
    device = Device(
        DeviceKind.HOST,
        "n",
        tuple(sorted({*found.ids, Id(IdKind.CHASSIS_ID, "x", "local")})),
        (
            found.ports[0]._replace(neighbors=(neighbor,)),
            Port("mlx5_0/1", medium=Medium.INFINIBAND),
        ),
    )
    assert net_sysfs.restore(device) == CollectedFacts(ids=found.ids, ports=found.ports)


GPU = {"class": "0x030200\n", "vendor": "0x10de\n", "numa_node": "1\n"}
BMC_DISPLAY = {"class": "0x030000", "vendor": "0x1a03", "boot_vga": "1"}


def gpu_at(path: str, **changes: str) -> dict[str, str]:
    """Return the files of a GPU at a path below `devices`, and its place on the bus."""
    base = f"devices/{path}"
    files = {f"{base}/{name}": text for name, text in (GPU | changes).items()}
    return {f"bus/pci/devices/{path.rsplit('/', 1)[-1]}": f"->../../../{base}", **files}


@pytest.mark.parametrize(
    ("gpus", "numa_node", "distance"),
    [
        pytest.param({}, "1", None, id="none without GPUs"),
        pytest.param(
            gpu_at("pci0000:00/0000:00:01.0/0000:02:00.0/0000:05:00.0"),
            "0",
            GpuDistance.SWITCH,
            id="below the same root port",
        ),
        pytest.param(
            gpu_at(
                "pci0000:00/0000:00:01.0/0000:05:00.0", **{"class": "0x120000", "vendor": "0x1002"}
            ),
            "0",
            GpuDistance.SWITCH,
            id="of AMD, an accelerator by its class",
        ),
        pytest.param(
            gpu_at("pci0000:80/0000:80:01.0/0000:85:00.0"),
            "1",
            GpuDistance.NUMA,
            id="on the same NUMA node",
        ),
        pytest.param(
            gpu_at("pci0000:80/0000:80:01.0/0000:85:00.0"), "0", GpuDistance.OTHER, id="elsewhere"
        ),
        pytest.param(
            gpu_at("pci0000:80/0000:80:01.0/0000:85:00.0", numa_node="-1"),
            "-1",
            GpuDistance.OTHER,
            id="where NUMA nodes are unknown",
        ),
        pytest.param(
            gpu_at("pci0000:00/0000:00:01.0/0000:05:00.0", **BMC_DISPLAY),
            "1",
            None,
            id="not to the display of a BMC",
        ),
        pytest.param(
            gpu_at("pci0000:00/0000:00:01.0/0000:05:00.0", **{"class": "0x020000"}),
            "1",
            None,
            id="not to a card that is no GPU",
        ),
    ],
)
def test_it_returns_the_distance_to_the_nearest_gpu(
    tmp_path: Path, gpus: dict[str, str], numa_node: str, distance: GpuDistance | None
) -> None:
    plant(tmp_path, card("eth0", PF, MAC) | gpus)
    plant(tmp_path, {f"devices/pci0000:00/0000:00:01.0/{PF}/numa_node": numa_node})
    port = only_port(tmp_path)
    assert port.gpu_distance is distance
    assert port.numa_node == (None if numa_node == "-1" else int(numa_node))


def test_it_finds_the_pci_address_above_a_virtio_device(tmp_path: Path) -> None:
    device = "devices/pci0000:00/0000:00:03.0/virtio2"
    plant(
        tmp_path,
        {
            "class/net/eth0": f"->../../{device}/net/eth0",
            f"{device}/net/eth0/type": "1",
            f"{device}/net/eth0/device": "->../..",
        },
    )
    assert only_port(tmp_path).pci_address == "0000:00:03.0"


MIB = 1 << 20


def windows(*sizes: int) -> str:
    """Return the text of `resource` with windows of these sizes to the memory of a function."""
    rows = [f"0x{size:016x} 0x{2 * size - 1:016x} 0x000000000014220c" for size in sizes]
    return "\n".join([*rows, "0x0000000000000000 0x0000000000000000 0x0000000000000000"])


@pytest.mark.parametrize(
    ("function", "counts"),
    [
        pytest.param({"vendor": "0x10de", "class": "0x030200"}, True, id="an NVIDIA H100"),
        pytest.param({"vendor": "0x1002", "class": "0x038000"}, True, id="an AMD MI250"),
        pytest.param({"vendor": "0x1002", "class": "0x120000"}, True, id="an AMD MI300X"),
        pytest.param({"vendor": "0x1da3", "class": "0x120000"}, True, id="an Intel Gaudi"),
        pytest.param({"vendor": "0x8086", "class": "0x038000"}, True, id="an Intel Max"),
        pytest.param({"vendor": "0x19e5", "class": "0x120000"}, True, id="a Huawei Ascend"),
        pytest.param({"vendor": "0xcabc", "class": "0x120000"}, True, id="a Cambricon MLU"),
        pytest.param({"vendor": "0x9999", "class": "0x030200"}, True, id="one of an unknown maker"),
        pytest.param(
            {"vendor": "0x10de", "class": "0x030000", "resource": windows(16 * MIB, 256 * MIB)},
            True,
            id="a graphics card that is not the console",
        ),
        pytest.param(
            {"vendor": "0x10de", "class": "0x030000", "boot_vga": "0"},
            True,
            id="a graphics card whose windows are unknown",
        ),
        pytest.param(
            {"vendor": "0x1a03", "class": "0x030000", "resource": windows(64 * MIB, 128 << 10)},
            False,
            id="a BMC's display beside a graphics card that is the console",
        ),
        pytest.param(
            {"vendor": "0x102b", "class": "0x030000", "boot_vga": "1"}, False, id="a Matrox G200"
        ),
        pytest.param(
            {"vendor": "0x1af4", "class": "0x038000", "drm/card0/card0-Virtual-1/status": "on"},
            False,
            id="the display of a virtual machine",
        ),
        pytest.param(
            {"vendor": "0x8086", "class": "0x038000", "drm/card1/card1-DP-1/status": "x"},
            False,
            id="the display of a CPU",
        ),
        pytest.param(
            {
                "vendor": "0x1002",
                "class": "0x038000",
                "drm/card1/card1/x": "",
                "drm/renderD128": "",
            },
            True,
            id="a GPU with a driver and without a connector",
        ),
        pytest.param({"vendor": "0x10de", "class": "0x040300"}, False, id="no sound of a card"),
        pytest.param({"vendor": "0x10de", "class": "0x068000"}, False, id="no NVSwitch"),
    ],
)
def test_nearness_counts_from(tmp_path: Path, function: dict[str, str], *, counts: bool) -> None:
    gpu = gpu_at("pci0000:00/0000:00:01.0/0000:05:00.0", **function)
    plant(tmp_path, card("eth0", PF, MAC) | gpu)
    assert (only_port(tmp_path).gpu_distance is GpuDistance.SWITCH) is counts


@pytest.mark.parametrize(
    ("numa_nodes", "node"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"0000:00:01.0/0000:03:00.0": "-1", "0000:00:01.0": "1"}, 1, id="the bridge"),
        pytest.param({"0000:00:01.0/0000:03:00.0": "0", "0000:00:01.0": "1"}, 0, id="its own"),
        pytest.param({"0000:00:01.0/0000:03:00.0": "-1", "0000:00:01.0": "-1"}, None, id="only -1"),
    ],
)
def test_it_finds_the_numa_node_of(
    tmp_path: Path, numa_nodes: dict[str, str], node: int | None
) -> None:
    plant(tmp_path, card("eth0", PF, MAC))
    plant(
        tmp_path / "devices/pci0000:00", {f"{at}/numa_node": one for at, one in numa_nodes.items()}
    )
    assert only_port(tmp_path).numa_node == node
