"""A switch may send another chassis id on each port; two switches of one name are two."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from tests.topology.cables import report
from topology.join.fabric_join import build_fabric
from topology.model.facts import Capability, FindingKind, Neighbor, Source
from topology.model.ids import Id, IdKind

MACS = ("80:6a:00:01:00:01", "80:6a:00:01:00:02", "80:6a:00:01:00:07")
PORTS = ("Ethernet1/1", "Ethernet1/2", "Ethernet1/7")
ADDRESS = ("10.9.0.1", "10.9.0.1", "10.9.0.1")
NO_ADDRESS = ("", "", "")


class Sight(NamedTuple):
    """What one port of a host hears of a device named leaf1."""

    host: str
    mac: str
    port: str
    address: str


def heard(sight: Sight) -> Neighbor:
    ids = [Id(IdKind.CHASSIS_ID, sight.mac, "mac")]
    ids += [Id(IdKind.IP, sight.address)] if sight.address else []
    port_ids = (Id(IdKind.IFNAME, sight.port), Id(IdKind.PORT_ID, sight.port, "ifname"))
    return Neighbor(tuple(sorted(ids)), "leaf1", port_ids, sight.port, Source.LLDP)


def sights(
    macs: Sequence[str] = MACS,
    ports: Sequence[str] = PORTS,
    addresses: Sequence[str] = ADDRESS,
    hosts: Sequence[str] = ("h1", "h2", "h3"),
) -> list[Sight]:
    return list(map(Sight, hosts, macs, ports, addresses))


def count_devices(seen: Sequence[Sight]) -> int:
    hosts: dict[str, list[Sight]] = {}
    for sight in seen:
        hosts.setdefault(sight.host, []).append(sight)
    claims = [report(host, {"eth0": list(map(heard, own))}) for host, own in hosts.items()]
    fabric = build_fabric(claims)
    assert len(fabric.links) == len(seen)
    return sum(not device.has_report for device in fabric.devices)


BLOCKS = ("80:6a:00:01:00:10", "80:6a:00:01:00:20", "80:6a:00:01:00:70")
LANES = ("Ethernet1/1/1", "Ethernet1/2/1", "Ethernet1/7/1")
FAR = ("80:6a:00:01:00:01", "90:aa:00:01:00:02", "a0:bb:00:01:00:07")


@pytest.mark.parametrize(
    ("seen", "num"),
    [
        pytest.param(sights(), 1, id="one address"),
        pytest.param(sights(FAR), 3, id="one address, and ids without a pattern"),
        pytest.param(sights(BLOCKS), 3, id="blocks of ids, as whole switches have"),
        pytest.param(sights(ports=LANES), 1, id="the first lanes of ports"),
        pytest.param(sights(addresses=NO_ADDRESS), 1, id="ids in step with the ports"),
        pytest.param(sights(FAR, addresses=NO_ADDRESS), 3, id="neither address nor step"),
        pytest.param(sights(addresses=("10.9.0.1", "10.9.0.2", "10.9.0.3")), 3, id="addresses"),
        pytest.param(sights(ports=(PORTS[0],) * 3), 3, id="one port of each"),
        pytest.param(sights(hosts=("h1", "h1", "h1")), 3, id="side by side on one port"),
        pytest.param(
            [*sights(), Sight("h4", MACS[0], PORTS[1], ADDRESS[0])], 3, id="one id on two ports"
        ),
        pytest.param(
            [*sights(), Sight("h4", MACS[0], PORTS[0], ADDRESS[0])], 3, id="one port that two hear"
        ),
    ],
)
def test_ids_of_one_name_are_of_one_switch_only_if_nothing_speaks_against_it(
    seen: Sequence[Sight], num: int
) -> None:
    assert count_devices(seen) == num
    assert count_devices(seen[::-1]) == num


@pytest.mark.parametrize("macs", [FAR, BLOCKS])
def test_what_nobody_can_tell_is_a_finding(macs: Sequence[str]) -> None:
    bridges = [heard(sight)._replace(capabilities=(Capability.BRIDGE,)) for sight in sights(macs)]
    claims = [report(f"h{at}", {"eth0": [bridge]}) for at, bridge in enumerate(bridges)]
    (finding,) = build_fabric(claims).findings
    assert finding.kind is FindingKind.DUPLICATE_NAME
    assert "3 chassis ids are heard under the name leaf1" in finding.message
