"""Which interfaces are ports, by their place in the tree of devices: layouts of real machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.collectors import net_sysfs
from agent.collectors.probe import CollectedFacts
from tests.agent.fakes import FakeRunner
from tests.agent.nodes import card, plant, settings_for, virtual
from topology.model.facts import GpuDistance, PortState
from topology.model.ids import IdKind

MAC, OTHER_MAC = "b8:ce:f6:00:00:01", "b8:ce:f6:00:00:02"
PF = "0000:03:00.0"
CARD = f"devices/pci0000:00/0000:00:01.0/{PF}"
USB = "devices/pci0000:00/0000:00:14.0/usb1/1-14/1-14.1/1-14.1:1.0"


def interface(device: str, name: str = "net0", mac: str = MAC, **files: str) -> dict[str, str]:
    """Return the files of an interface of a device at any place of the tree."""
    base = f"{device}/net/{name}"
    up = "/".join([".."] * 2)
    known = {"type": "1", "address": mac, "carrier": "1", "operstate": "up", "speed": "25000"}
    return {
        f"class/net/{name}": f"->../../{base}",
        f"{base}/device": f"->{up}",
        **{f"{base}/{path}": text for path, text in (known | files).items()},
    }


def on_pci(address: str, pci_class: str) -> dict[str, str]:
    """Return the files of a PCI function below the root port 0000:00:01.0."""
    device = f"devices/pci0000:00/0000:00:01.0/{address}"
    return {f"bus/pci/devices/{address}": f"->../../../{device}", f"{device}/class": pci_class}


def collect(root: Path, *patterns: str) -> CollectedFacts:
    return net_sysfs.collect(settings_for(root, interfaces=patterns), FakeRunner())


PORTS = [
    pytest.param(interface(CARD) | on_pci(PF, "0x020000"), id="a card"),
    pytest.param(interface(CARD) | on_pci(PF, "0x028000"), id="a card of another network class"),
    pytest.param(interface(CARD) | on_pci(PF, "0x120000"), id="a port of an accelerator"),
    pytest.param(interface(CARD) | on_pci(PF, "0x0b4000"), id="a card that is a processor"),
    pytest.param(interface(CARD, phys_port_name="p0"), id="the uplink of a switching card"),
    pytest.param(interface(f"{CARD}/virtio0") | on_pci(PF, "0x020000"), id="virtio on PCI"),
    pytest.param(interface("devices/platform/LNRO0005:00/virtio2"), id="virtio of a small VM"),
    pytest.param(interface("devices/platform/MLNXBF17:00"), id="the management port of a DPU"),
    pytest.param(interface("devices/platform/soc/17a00000.ethernet"), id="a port of a SoC"),
    pytest.param(
        interface("devices/LNXSYSTM:00/ACPI0004:00/VMBUS:00/f8615163-df3e-46c5-913f-f2d2f965ed0e"),
        id="a netvsc interface",
    ),
    pytest.param(interface("devices/vif-0"), id="a Xen interface"),
]
NO_PORTS = [
    pytest.param(interface(USB), id="the USB interface of a BMC"),
    pytest.param(interface("devices/platform/3610000.usb/usb2/2-3/2-3:1.0"), id="USB of a SoC"),
    pytest.param(interface(f"{CARD}/mlx5_core.sf.4"), id="a scalable function of mlx5"),
    pytest.param(interface(f"{CARD}/ice.sf.1"), id="a scalable function of ice"),
    pytest.param(
        interface(f"{CARD}/odd") | {f"{CARD}/odd/subsystem": "->/x/bus/auxiliary"},
        id="a function on the auxiliary bus",
    ),
    pytest.param(interface(CARD) | {f"{CARD}/physfn/x": ""}, id="a virtual function"),
    pytest.param(interface(CARD, phys_port_name="c1pf0sf88"), id="a representor"),
    pytest.param(
        interface("devices/platform/MLNXBF01:00/virtio1", "tmfifo_net0"), id="rshim in a DPU"
    ),
    pytest.param(
        interface("devices/platform/x/virtio1")
        | {"devices/platform/x/driver": "->/x/drivers/mlxbf-tmfifo"},
        id="rshim in a DPU by its driver",
    ),
    pytest.param(
        interface(f"{CARD}/virtio3") | on_pci(PF, "0x080100"), id="rshim on PCI, in the host"
    ),
    pytest.param(interface(CARD) | on_pci(PF, "0x068000"), id="a bridge between two hosts"),
    pytest.param(
        interface(f"{CARD}/domain0/0-0/0-1/0-1.0") | on_pci(PF, "0x0c0340"), id="Thunderbolt"
    ),
    pytest.param(interface(CARD) | {f"{CARD}/net/net0/phy80211/name": "phy0"}, id="WiFi"),
    pytest.param(interface(CARD, uevent="DEVTYPE=wwan\nINTERFACE=net0"), id="a mobile radio"),
    pytest.param(virtual("net0", MAC), id="a veth, bridge, VLAN, dummy, docker0 or TAP"),
]


@pytest.mark.parametrize("files", PORTS)
def test_it_is_a_port(tmp_path: Path, files: dict[str, str]) -> None:
    found = collect(plant(tmp_path, files))
    assert len(found.ports) == 1
    assert found.excluded == frozenset()


@pytest.mark.parametrize("files", NO_PORTS)
def test_it_is_no_port_and_its_address_is_no_id(tmp_path: Path, files: dict[str, str]) -> None:
    found = collect(plant(tmp_path, files | card("eth9", "0000:09:00.0", OTHER_MAC)))
    assert [port.name for port in found.ports] == ["eth9"]
    assert [id_.value for id_ in found.ids] == [OTHER_MAC]
    assert len(found.excluded) == 1


def test_a_pattern_makes_a_port_of_a_usb_card(tmp_path: Path) -> None:
    found = collect(plant(tmp_path, interface(USB, "enx1")), "enx*")
    assert [port.name for port in found.ports] == ["enx1"]


IMAGE, OTHER_IMAGE = "1c34:da03:0000:0001", "1c34:da03:0000:0002"
NO_IMAGE = "0000:0000:0000:0000"
SECOND = "devices/pci0002:00/0002:00:01.0/0002:03:00.0"


def pair(first: dict[str, str], second: dict[str, str], **devices: str) -> dict[str, str]:
    """Return two functions of two slots, and their RDMA devices."""
    files = interface(CARD, "eth0", MAC, **first) | interface(SECOND, "eth1", OTHER_MAC, **second)
    for (name, image), place in zip(devices.items(), (CARD, SECOND), strict=False):
        files[f"{place}/infiniband/{name}/sys_image_guid"] = image
        files[f"{place}/vendor"] = "0x15b3"
    return files


@pytest.mark.parametrize(
    ("files", "names"),
    [
        pytest.param(
            pair({"phys_port_id": "a1"}, {"phys_port_id": "a1"}), ["eth0"], id="one port id"
        ),
        pytest.param(
            pair({"phys_port_id": "a1"}, {"phys_port_id": "a2"}), ["eth0", "eth1"], id="two ids"
        ),
        pytest.param(
            pair(*[{"phys_switch_id": "s", "phys_port_name": "p0"}] * 2),
            ["eth0"],
            id="one port of one switch in the card",
        ),
        pytest.param(
            pair(*[{"phys_switch_id": "s", "phys_port_name": name} for name in ("p0", "p1")]),
            ["eth0", "eth1"],
            id="two ports of one switch in the card",
        ),
        pytest.param(pair(*[{"phys_switch_id": "s"}] * 2), ["eth0", "eth1"], id="no port names"),
        pytest.param(pair(*[{"phys_port_name": "p0"}] * 2), ["eth0", "eth1"], id="no card"),
        pytest.param(
            pair(*[{"phys_port_name": "p0"}] * 2, mlx5_0=IMAGE, mlx5_1=IMAGE),
            ["eth0"],
            id="Socket Direct: one port name, one system image",
        ),
        pytest.param(
            pair({"phys_port_name": "p0"}, {"phys_port_name": "p1"}, mlx5_0=IMAGE, mlx5_1=IMAGE),
            ["eth0", "eth1"],
            id="a card with two ports",
        ),
        pytest.param(
            pair(*[{"phys_port_name": "p0"}] * 2, mlx5_0=IMAGE, mlx5_1=OTHER_IMAGE),
            ["eth0", "eth1"],
            id="two cards",
        ),
        pytest.param(
            pair(*[{"phys_port_name": "p0"}] * 2, irdma0=NO_IMAGE, irdma1=NO_IMAGE),
            ["eth0", "eth1"],
            id="two cards without a system image",
        ),
        pytest.param(
            pair(*[{"phys_port_name": "p0"}] * 2, irdma0=IMAGE, irdma1=IMAGE)
            | {f"{place}/vendor": "0x8086" for place in (CARD, SECOND)},
            ["eth0", "eth1"],
            id="two cards of another maker",
        ),
        pytest.param(
            pair(*[{"phys_port_id": "00", "phys_switch_id": "00", "phys_port_name": "p0"}] * 2),
            ["eth0", "eth1"],
            id="ids of zeros",
        ),
        pytest.param(
            pair({"phys_port_id": "a1", "carrier": "0"}, {"phys_port_id": "a1"}),
            ["eth1"],
            id="the function that has a link",
        ),
    ],
)
def test_functions_of_one_port_are_one_port(
    tmp_path: Path, files: dict[str, str], names: list[str]
) -> None:
    found = collect(plant(tmp_path, files))
    assert [port.name for port in found.ports] == names
    assert {id_.value for id_ in found.ids} == {MAC, OTHER_MAC}
    others = {"eth0", "eth1"} - set(names)
    assert found.port_of == {(name, names[0]) for name in others}
    assert found.excluded == frozenset()


def test_a_port_of_two_sockets_is_as_near_as_its_nearer_function(tmp_path: Path) -> None:
    gpu = "devices/pci0002:00/0002:00:01.0/0002:04:00.0"
    files = pair({"phys_port_id": "a1"}, {"phys_port_id": "a1"}) | {
        "bus/pci/devices/0002:04:00.0": f"->../../../{gpu}",
        f"{gpu}/class": "0x030200",
    }
    (port,) = collect(plant(tmp_path, files)).ports
    assert (port.name, port.gpu_distance) == ("eth0", GpuDistance.SWITCH)


NETVSC = "devices/LNXSYSTM:00/VMBUS:00/f8615163-df3e-46c5-913f-f2d2f965ed0e"
VIRTIO = "devices/pci0000:00/0000:00:05.0/virtio0"


@pytest.mark.parametrize("upper", [NETVSC, VIRTIO], ids=["netvsc", "net_failover"])
def test_an_interface_and_its_fast_path_are_one_port(tmp_path: Path, upper: str) -> None:
    files = interface(upper, "eth0") | interface(CARD, "enP1s1", speed="100000")
    files |= {f"{CARD}/net/enP1s1/master": f"->../../../../../../{upper}/net/eth0"}
    files |= {f"{CARD}/infiniband/mlx5_0/node_type": "1: CA"}
    (port,) = collect(plant(tmp_path, files)).ports
    assert (port.name, port.rdma_device, port.state) == ("eth0", "mlx5_0", PortState.UP)
    assert [id_.value for id_ in port.ids if id_.kind is IdKind.MAC] == [MAC]


def test_slaves_of_a_bond_or_a_bridge_stay_ports(tmp_path: Path) -> None:
    files = pair({}, {}) | virtual("bond0", MAC) | virtual("br0", MAC)
    files |= {f"{CARD}/net/eth0/master": "->/x/net/bond0", f"{SECOND}/net/eth1/master": "->/x/br0"}
    assert len(collect(plant(tmp_path, files)).ports) == 2


def test_it_lists_the_addresses_that_every_machine_of_a_kind_has(tmp_path: Path) -> None:
    files = interface(USB, "enx1", "be:3a:f2:b6:05:9f") | virtual("br0", OTHER_MAC)
    files |= interface("devices/platform/MLNXBF01:00/virtio1", "tmfifo_net0", "00:1a:ca:ff:ff:01")
    found = collect(plant(tmp_path, files))
    assert found.repeated_macs == {"be:3a:f2:b6:05:9f", "00:1a:ca:ff:ff:01"}
