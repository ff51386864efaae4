"""`PlanPorts`: which device and port a name in a plan selects, and which names are refused."""

import pytest

from topology.cabling.plan_names import PlanPorts, UnknownReason
from topology.join.fabric_join import build_fabric
from topology.model.cabling_plan import PlannedCable
from topology.model.claims import Claim, Origin
from topology.model.fabric import Fabric
from topology.model.facts import Device, DeviceKind, Medium, Port, PortName
from topology.model.ids import Id, IdKind


def claim(name: str, *ports: Port, number: int = 0) -> Claim:
    ids = (Id(IdKind.NODE_GUID, f"{number:016x}"),) if number else ()
    return Claim(Device(DeviceKind.SWITCH, name, ids, ports or (Port("1"),)), Origin.REPORT)


def ports_of(fabric: Fabric, *devices: str) -> PlanPorts:
    return PlanPorts(fabric, [PlannedCable(name, "1", "else", "1", 1) for name in devices])


@pytest.mark.parametrize(
    ("seen", "planned", "found"),
    [
        pytest.param(["leaf1"], "leaf1", 0, id="the name itself"),
        pytest.param(["leaf1"], "LEAF1.example.com", 0, id="other case, and a domain"),
        pytest.param(["Leaf1.example.com"], "leaf1", 0, id="a name without its domain"),
        pytest.param(["leaf1"], "leaf2", UnknownReason.UNSEEN, id="another name"),
        pytest.param(["leaf1.a", "leaf1.b"], "leaf1.b", 1, id="one full name of two"),
        pytest.param(
            ["leaf1.a", "leaf1.b"], "leaf1", UnknownReason.SHARED, id="a name that two share"
        ),
        pytest.param(
            ["leaf1.a", "leaf1.b"],
            "leaf1.c",
            UnknownReason.SHARED,
            id="a third name with this short name",
        ),
        pytest.param(
            ["leaf1", "leaf1"], "leaf1", UnknownReason.SHARED, id="one name on two devices"
        ),
        pytest.param(["leaf1.a"], "leaf1.b", UnknownReason.UNSEEN, id="a name in another domain"),
        pytest.param(["10.0.0.1"], "10.0.0.1", 0, id="an address"),
        pytest.param(["10.0.0.1"], "10.0.0.2", UnknownReason.UNSEEN, id="another address"),
    ],
)
def test_it_finds_a_device_by(seen: list[str], planned: str, found: int | UnknownReason) -> None:
    fabric = build_fabric([claim(name, number=number) for number, name in enumerate(seen, 1)])
    assert ports_of(fabric, planned).find_device(planned) == found


def test_it_refuses_a_short_name_that_the_plan_uses_in_two_domains() -> None:
    fabric = build_fabric([claim("leaf1", number=1)])
    ports = ports_of(fabric, "leaf1.row1", "leaf1.row2", "leaf1")
    assert ports.find_device("leaf1.row1") is UnknownReason.SHARED
    assert ports.find_device("leaf1") == 0


def test_it_calls_a_device_without_ports_silent() -> None:
    node = Claim(Device(DeviceKind.HOST, "n1", (Id(IdKind.NODE_NAME, "n1"),)), Origin.INVENTORY)
    assert ports_of(build_fabric([node])).find_device("n1") is UnknownReason.SILENT


ETHERNET = Medium.ETHERNET
INFINIBAND = Medium.INFINIBAND


@pytest.mark.parametrize(
    ("medium", "seen", "planned", "found"),
    [
        pytest.param(ETHERNET, ["swp1", "swp2"], "swp2", 1, id="its own name"),
        pytest.param(ETHERNET, ["swp1"], "SWP1", 0, id="other letter case"),
        pytest.param(ETHERNET, ["Ethernet1/1"], "Eth1/1", 0, id="a short form"),
        pytest.param(ETHERNET, ["Eth1/1"], "Ethernet 1/1", 0, id="a long form"),
        pytest.param(ETHERNET, ["Ethernet1", "Eth1"], "Eth1", 1, id="its own name before others"),
        pytest.param(ETHERNET, ["Ethernet1", "Eth1"], "Et1", None, id="a form that two have"),
        pytest.param(ETHERNET, ["17"], "P17", None, id="a panel name of InfiniBand elsewhere"),
        pytest.param(ETHERNET, ["1/17"], "2/17", None, id="another slot"),
        pytest.param(INFINIBAND, ["17", "7"], "P17", 0, id="a panel name"),
        pytest.param(INFINIBAND, ["17", "7"], "1/17", 0, id="a module and a port"),
        pytest.param(INFINIBAND, ["17", "7"], "U1/P7", 1, id="ibdm's name"),
        pytest.param(INFINIBAND, ["17"], "IB1/17", 0, id="the switch's own CLI name"),
        pytest.param(INFINIBAND, ["17"], "2/17", None, id="another module"),
        pytest.param(INFINIBAND, ["mlx5_0/1"], "mlx5_0", 0, id="an RDMA device of one port"),
        pytest.param(
            INFINIBAND, ["mlx4_0/1", "mlx4_0/2"], "mlx4_0", None, id="an RDMA device of two ports"
        ),
    ],
)
def test_it_finds_a_port_by(
    medium: Medium, seen: list[str], planned: str, found: int | None
) -> None:
    fabric = build_fabric([claim("sw", *(Port(name, medium=medium) for name in seen))])
    ports = ports_of(fabric)
    port_number = ports.find_port(0, PortName("sw", planned))
    assert ports.is_seen(port_number) == (found is not None)
    assert ports.names[port_number] == ("sw", planned if found is None else seen[found])


def test_it_finds_the_interface_by_its_rdma_device() -> None:
    fabric = build_fabric([claim("h1", Port("eth4", rdma_device="mlx5_2"))])
    assert ports_of(fabric).find_port(0, PortName("h1", "mlx5_2")) == 0


def test_it_gives_one_number_to_a_port_that_is_not_in_the_fabric() -> None:
    ports = ports_of(build_fabric([claim("sw")]))
    eth9, spelled, eth8 = (
        ports.find_port(0, PortName("sw", name)) for name in ("eth9", "Ethernet9", "eth8")
    )
    assert eth9 == spelled != eth8
    assert {ports.devices[port] for port in (eth8, eth9)} == {0}


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("HundredGigE1/0/1", "Hu1/0/1"),
        ("HundredGigE0/0/0/1", "HundredGig 0/0/0/1"),
        ("TenGigabitEthernet1/0/1", "Te1/0/1"),
        ("TenGigabitEthernet1/0/1", "TenGigE1/0/1"),
        ("Ten-GigabitEthernet1/0/1", "tengigabitethernet 1/0/1"),
        ("TwentyFiveGigE1/0/1", "Twe1/0/1"),
        ("TwentyFiveGigE0/0/0/1", "TF0/0/0/1"),
        ("FortyGigabitEthernet1/1/1", "Fo1/1/1"),
        ("fortyGigE 0/48", "Fo 0/48"),
        ("FourHundredGigE0/0/0/1", "FH0/0/0/1"),
        ("fourhundredgige0/0/0/1", "FH0/0/0/1"),
        ("GigabitEthernet0/1", "Gi0/1"),
        ("GigabitEthernet1/0/1", "GE1/0/1"),
        ("FastEthernet0/1", "Fa0/1"),
        ("Ethernet1/1", "Et1/1"),
        ("Ethernet49/1", "e49/1"),
        ("swp1s0", "swp01s0"),
        ("xe-0/0/1:0", "XE-0/0/1:0"),
        ("Management1", "Ma1"),
        ("MgmtEth0/RP0/CPU0/0", "Mg0/RP0/CPU0/0"),
    ],
)
def test_it_finds_a_port_by_an_abbreviation_either_way(full: str, short: str) -> None:
    others = [Port(name) for name in ("Po1", "Vl7", "Hu7/7", "swp2", "lo0", "17")]
    for seen, planned in ((full, short), (short, full)):
        ports = ports_of(build_fabric([claim("sw", *others, Port(seen))]))
        port = ports.find_port(0, PortName("sw", planned))
        assert ports.is_seen(port)
        assert ports.names[port].port == seen


@pytest.mark.parametrize(
    ("seen", "planned", "found"),
    [
        pytest.param(["Hu1/0/1"], "HundredGigE1/0/2", None, id="another number"),
        pytest.param(["Hu1/0/1"], "Te1/0/1", None, id="letters of another kind"),
        pytest.param(["xe-0/0/1"], "et-0/0/1", None, id="a port of another rate"),
        pytest.param(["Fo1/0/1", "FH1/0/1"], "FourHundredGigE1/0/1", None, id="two that may be it"),
        pytest.param(
            ["Te1/1/1", "Twe1/1/1", "Gi1/1/1"], "TwentyFiveGigE1/1/1", "Twe1/1/1", id="whole words"
        ),
        pytest.param(["7"], "Ethernet7", None, id="a bare number, which may be an index"),
        pytest.param(["Fa0/1", "Gi0/1"], "GigabitEthernet0/1", "Gi0/1", id="its own letters"),
    ],
)
def test_it_finds_one_port_or_none_by_an_abbreviation(
    seen: list[str], planned: str, found: str | None
) -> None:
    ports = ports_of(build_fabric([claim("sw", *map(Port, seen))]))
    port = ports.find_port(0, PortName("sw", planned))
    assert (ports.names[port].port if ports.is_seen(port) else None) == found


def test_it_leaves_a_port_to_the_row_of_the_plan_that_has_its_name() -> None:
    fabric = build_fabric([claim("sw", Port("Te1/0/1"))])
    names = ("Te1/0/1", "TwentyFiveGigE1/0/1")
    ports = PlanPorts(fabric, [PlannedCable("sw", name, f"h-{name}", "eth0", 1) for name in names])
    is_seen = [ports.is_seen(ports.find_port(0, PortName("sw", name))) for name in names]
    assert is_seen == [True, False]
