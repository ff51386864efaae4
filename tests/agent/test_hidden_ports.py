"""Interfaces that a pod owns: their ports and last neighbors stay, from round to round.

A tree of `/sys` before and after a pod takes an interface differs in the interface alone: its RDMA
device stays if RDMA is shared between namespaces, and goes with it otherwise.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agent.collection import CollectorRun, NodeContext, RunOutcome, collect, restore_facts
from agent.collectors.probe import CollectedFacts
from agent.node_report import merge_device
from tests.agent.fakes import FakeRunner, printed
from tests.agent.nodes import card, chassis, heard, node_for, plant
from topology.model.facts import Device, Medium, PortState

PF, OTHER = "0000:03:00.0", "0000:04:00.0"
MAC, OTHER_MAC = "b8:ce:f6:00:00:01", "b8:ce:f6:00:00:02"
DEVICES = "devices/pci0000:00/0000:00:01.0"
GID = "fe80:0000:0000:0000:bace:f6ff:fe00:0001"


def driven(address: str) -> dict[str, str]:
    """Return the files of a PCI network function with the host's driver."""
    device = f"{DEVICES}/{address}"
    return {
        f"bus/pci/devices/{address}": f"->../../../{device}",
        f"{device}/class": "0x020000",
        f"{device}/driver": "->/x/drivers/mlx5_core",
    }


def roce(
    name: str = "mlx5_0", address: str = PF, *, gid: str = GID, **files: str
) -> dict[str, str]:
    """Return the files of an RDMA device over Ethernet, with the answers of one port."""
    base = f"{DEVICES}/{address}/infiniband/{name}"
    port = {
        "link_layer": "Ethernet",
        "state": "4: ACTIVE",
        "phys_state": "5: LinkUp",
        "rate": "400 Gb/sec (4X NDR)",
        "gids/0": gid,
        **files,
    }
    return {
        f"class/infiniband/{name}": f"->../../{base}",
        f"{base}/device": "->../..",
        f"{base}/sys_image_guid": f"b83f:d203:0000:00{address[5:7]}",
        **{f"{base}/ports/1/{file}": text for file, text in port.items()},
    }


class Node:
    """A node with a RoCE card and a management port, whose tree changes between rounds."""

    def __init__(self, root: Path) -> None:
        self.root = plant(
            root,
            card("eth0", PF, MAC, speed="400000")
            | card("eno1", OTHER, OTHER_MAC)
            | driven(PF)
            | driven(OTHER)
            | roce(),
        )
        self.known: dict[str, CollectedFacts] = {}
        self.runs: dict[str, CollectorRun] = {}

    def round(self, *neighbors: tuple[str, str, str]) -> Device:
        """Run one round, with these rows of lldpd; return the device of its report."""
        runner = FakeRunner(
            {"show neighbors": printed(heard(*neighbors)), "show chassis": printed(chassis(MAC))}
        )
        node: NodeContext = node_for(self.root, runner)
        runs = collect(node, self.known)
        self.known = {run.collector: run.facts for run in runs}
        self.runs = {run.collector: run for run in runs}
        return merge_device(node.settings, [run.facts for run in runs])

    def hide(self, name: str = "eth0") -> None:
        """Move an interface into a pod."""
        link = self.root / "class/net" / name
        shutil.rmtree(link.resolve().parent)
        link.unlink()

    def remove(self, path: str) -> None:
        """Remove a link."""
        (self.root / path).unlink()


EARLIER = (("eth0", "rail-1", "swp1"), ("eno1", "oob", "swp9"))
NOW = (("eno1", "oob", "swp9"),)


def rows(device: Device) -> dict[str, tuple[str, list[str]]]:
    """Return the state and the neighbors of each port."""
    return {
        port.name: (port.state.value, [one.device_name for one in port.neighbors])
        for port in device.ports
    }


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_port_that_a_pod_took_keeps_its_last_neighbor_and_says_so(node: Node) -> None:
    before = node.round(*EARLIER)
    node.hide()
    for _ in range(3):
        after = node.round(*NOW)
        assert rows(after) == rows(before)
        assert after.ids == before.ids
    assert node.runs["net_sysfs"].outcome is RunOutcome.OK
    assert "in another network namespace, such as that of a pod: eth0" in (
        node.runs["net_sysfs"].message
    )


def test_it_is_known_after_a_restart(node: Node) -> None:
    before = node.round(*EARLIER)
    node.hide()
    node.known = restore_facts(before)
    assert rows(node.round(*NOW)) == rows(before)


def test_its_state_is_that_of_its_rdma_device(node: Node) -> None:
    node.round(*EARLIER)
    node.hide()
    (node.root / "class/infiniband/mlx5_0/ports/1/phys_state").write_text("2: Polling")
    (port, _) = sorted(node.round(*NOW).ports, reverse=True)
    assert (port.name, port.state, port.rate_bps) == ("eth0", PortState.DOWN, 400 * 10**9)


def test_it_stays_if_its_rdma_device_goes_with_it(node: Node) -> None:
    node.round(*EARLIER)
    node.hide()
    node.remove("class/infiniband/mlx5_0")
    assert rows(node.round(*NOW))["eth0"] == ("unknown", ["rail-1"])


def test_a_port_without_rdma_stays_too(node: Node) -> None:
    node.round(*EARLIER)
    node.hide("eno1")
    assert rows(node.round(EARLIER[0]))["eno1"] == ("unknown", ["oob"])


def test_it_is_gone_with_its_driver(node: Node) -> None:
    node.round(*EARLIER)
    node.hide()
    node.remove("class/infiniband/mlx5_0")
    node.remove(f"{DEVICES}/{PF}/driver")
    assert set(rows(node.round(*NOW))) == {"eno1"}


@pytest.mark.parametrize("driver", ["vfio-pci", "mlx5_vfio_pci", "uio_pci_generic"])
def test_it_is_gone_if_a_virtual_machine_has_it(node: Node, driver: str) -> None:
    node.round(*EARLIER)
    node.hide()
    node.remove("class/infiniband/mlx5_0")
    node.remove(f"{DEVICES}/{PF}/driver")
    plant(node.root, {f"{DEVICES}/{PF}/driver": f"->/x/drivers/{driver}"})
    assert set(rows(node.round(*NOW))) == {"eno1"}


def test_a_renamed_interface_is_not_kept_under_its_old_name(node: Node) -> None:
    node.round(*EARLIER)
    node.hide()
    plant(node.root, card("ens1np0", PF, MAC))
    assert rows(node.round(("ens1np0", "rail-1", "swp1"), *NOW)) == {
        "ens1np0": ("up", ["rail-1"]),
        "eno1": ("up", ["oob"]),
    }


def test_it_is_the_interface_again_when_the_pod_ends(node: Node) -> None:
    before = node.round(*EARLIER)
    node.hide()
    node.round(*NOW)
    plant(node.root, card("eth0", PF, MAC, speed="400000"))
    moved = (("eth0", "rail-7", "swp1"), *NOW)
    assert rows(node.round(*moved))["eth0"] == ("up", ["rail-7"])
    assert node.runs["net_sysfs"].message == ""
    assert node.round(*EARLIER) == before


def test_a_port_that_was_never_seen_is_reported_as_its_rdma_device(node: Node) -> None:
    node.hide()
    (port, other) = sorted(node.round(*NOW).ports, reverse=True)
    assert (port.name, port.medium, port.state) == ("mlx5_0/1", Medium.ETHERNET, PortState.UNKNOWN)
    assert (port.rate_bps, port.pci_address) == (400 * 10**9, PF)
    assert [id_.value for id_ in port.ids] == [MAC]
    assert other.name == "eno1"
    node.known = restore_facts(node.round(*NOW))
    assert set(rows(node.round(*NOW))) == {"mlx5_0/1", "eno1"}
    plant(node.root, card("eth0", PF, MAC))
    assert rows(node.round(*EARLIER)) == {"eth0": ("up", ["rail-1"]), "eno1": ("up", ["oob"])}


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        pytest.param({"phys_state": "2: Polling"}, {"eno1"}, id="no link"),
        pytest.param({"link_layer": "Unspecified"}, {"eno1"}, id="no Ethernet, as with EFA"),
        pytest.param(
            {"gid_attrs/ndevs/0": "net1"}, {"eno1", "mlx5_0/1"}, id="the name that a pod gives it"
        ),
        pytest.param(
            {"gid_attrs/ndevs/0": "eno1"}, {"eno1", "mlx5_0/1"}, id="a name that is also here"
        ),
    ],
)
def test_only_a_link_shows_a_hidden_port(
    node: Node, changes: dict[str, str], names: set[str]
) -> None:
    node.hide()
    plant(
        node.root, {f"class/infiniband/mlx5_0/ports/1/{file}": one for file, one in changes.items()}
    )
    assert set(rows(node.round(*NOW))) == names


def test_a_second_function_of_a_port_with_an_interface_is_not_hidden(node: Node) -> None:
    """The kernel combines functions of one port under one interface (multi-pf-netdev)."""
    second = roce("mlx5_1", "0000:83:00.0") | driven("0000:83:00.0")
    plant(node.root, second)
    image = node.root / "class/infiniband/mlx5_1/sys_image_guid"
    image.write_text("b83f:d203:0000:0003")
    assert image.read_text() == (node.root / "class/infiniband/mlx5_0/sys_image_guid").read_text()
    assert set(rows(node.round(*EARLIER))) == {"eth0", "eno1"}


def test_the_second_port_of_a_card_may_be_hidden_alone(node: Node) -> None:
    second = roce("mlx5_1", "0000:03:00.1", gid=GID[:-1] + "9") | driven("0000:03:00.1")
    plant(node.root, second)
    assert set(rows(node.round(*EARLIER))) == {"eth0", "eno1", "mlx5_1/1"}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="by its address"),
        pytest.param(
            {"gids/0": "fe80:0000:0000:0000:b83f:d203:0000:0001", "gid_attrs/ndevs/0": "eth0"},
            id="by the name in the default GID",
        ),
    ],
)
def test_an_rdma_device_of_another_function_finds_its_interface(
    tmp_path: Path, files: dict[str, str]
) -> None:
    """As erdma, whose interface is a virtio device beside it."""
    node = Node(tmp_path)
    node.remove("class/infiniband/mlx5_0")
    shutil.rmtree(tmp_path / DEVICES / PF / "infiniband")
    plant(tmp_path, roce("erdma_0", "0000:0a:00.0", **files))
    ports = {port.name: port.rdma_device for port in node.round(*EARLIER).ports}
    assert ports["eth0"] == "erdma_0"
    assert ports.keys() == {"eth0", "eno1"}


def test_a_port_that_another_function_still_shows_is_not_kept_beside_it(node: Node) -> None:
    second, mac = "0000:83:00.0", "b8:ce:f6:00:00:03"
    plant(node.root, card("eth1", second, mac, phys_port_id="a1") | driven(second))
    (node.root / "class/net/eth0/phys_port_id").write_text("a1")
    assert set(rows(node.round(*EARLIER))) == {"eth0", "eno1"}
    node.hide()
    node.remove("class/infiniband/mlx5_0")
    assert set(rows(node.round(("eth1", "rail-1", "swp1"), *NOW))) == {"eth1", "eno1"}


def test_software_makes_no_rdma_port_of_an_interface(node: Node) -> None:
    gid = "fe80:0000:0000:0000:bace:f6ff:fe00:0002"
    base = "devices/virtual/infiniband/rxe0"
    plant(
        node.root,
        {
            "class/infiniband/rxe0": f"->../../{base}",
            f"{base}/ports/1/link_layer": "Ethernet",
            f"{base}/ports/1/state": "4: ACTIVE",
            f"{base}/ports/1/gids/0": gid,
            f"{base}/ports/1/gid_attrs/ndevs/0": "eno1",
        },
    )
    ports = {port.name: port.rdma_device for port in node.round(*EARLIER).ports}
    assert ports == {"eth0": "mlx5_0", "eno1": None}
