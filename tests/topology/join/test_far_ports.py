"""A port that its owner does not name in the same words is still one port with one cable."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.topology.cables import heard_from, mac_of, report
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim
from topology.model.fabric import Fabric
from topology.model.facts import Capability, Neighbor
from topology.model.ids import Id, IdKind


def sent(device: str, port: str) -> Neighbor:
    """Return an LLDP frame with the one MAC of a device as the port id, and another port name."""
    mac = mac_of(device)
    ids = (Id(IdKind.MAC, mac), Id(IdKind.PORT_ID, mac, "mac"))
    return heard_from(device, port)._replace(port_ids=ids, port_name=port)


def cables(fabric: Fabric) -> set[frozenset[str]]:
    ends = ((fabric.port_name(link.a), fabric.port_name(link.b)) for link in fabric.links)
    return {frozenset(f"{end.device} {end.port}" for end in pair) for pair in ends}


@given(st.integers(1, 6).flatmap(lambda size: st.permutations(range(size))))
def test_the_names_at_the_other_end_sort_as_the_ports_that_they_mean(far: Sequence[int]) -> None:
    leaf = {f"etp{at}": [sent("s1", f"Ethernet{4 * to}")] for at, to in enumerate(far)}
    spine = {f"etp{to}": [sent("l1", f"Ethernet{4 * at}")] for at, to in enumerate(far)}
    fabric = build_fabric([report("l1", leaf), report("s1", spine)])
    assert cables(fabric) == {
        frozenset((f"l1 etp{at}", f"s1 etp{to}")) for at, to in enumerate(far)
    }
    assert not any(link.is_one_sided for link in fabric.links)


@pytest.mark.parametrize("names", [("x", "x"), ("", "")])
def test_cables_without_names_are_as_many_as_their_ports(names: Sequence[str]) -> None:
    leaf = {f"etp{at}": [sent("s1", name)] for at, name in enumerate(names)}
    spine = {f"etp{at + 7}": [sent("l1", name)] for at, name in enumerate(names)}
    fabric = build_fabric([report("l1", leaf), report("s1", spine)])
    assert len(fabric.links) == len(names)
    assert not any(link.is_one_sided for link in fabric.links)


def test_a_mac_that_two_hosts_hear_is_no_port() -> None:
    heard = {f"h{at}": [sent("l1", f"Ethernet{at}")] for at in (1, 2)}
    fabric = build_fabric([report(host, {"eth0": frames}) for host, frames in heard.items()])
    assert cables(fabric) == {frozenset((f"h{at} eth0", f"l1 Ethernet{at}")) for at in (1, 2)}


def test_a_name_that_two_hosts_hear_is_one_port_of_which_one_entry_is_stale() -> None:
    frames = {"eth0": [heard_from("l1", "Ethernet1")]}
    fabric = build_fabric([report("h1", frames), report("h2", frames)])
    assert {end for cable in cables(fabric) for end in cable} == {
        "h1 eth0",
        "h2 eth0",
        "l1 Ethernet1",
    }


LEAF = heard_from("l1", "to-h1")
STATION = heard_from("x1", "p0")._replace(capabilities=(Capability.STATION,))


FORWARDER = STATION._replace(capabilities=(Capability.BRIDGE, Capability.ROUTER))
NODE = heard_from("h1", "eth0")._replace(capabilities=(Capability.STATION,))


def claims(*heard: Neighbor, leaf: Sequence[Neighbor] | None = None) -> list[Claim]:
    host = report("h1", {"eth0": list(heard)})
    return [host] if leaf is None else [host, report("l1", {"to-h1": list(leaf)})]


@pytest.mark.parametrize(
    ("given", "num"),
    [
        pytest.param(
            claims(LEAF._replace(capabilities=(Capability.BRIDGE,)), STATION),
            1,
            id="a station beside a bridge",
        ),
        pytest.param(
            claims(LEAF, leaf=[heard_from("h1", "eth0"), STATION]),
            1,
            id="a station that nothing describes beside a node",
        ),
        pytest.param(
            claims(LEAF, leaf=[NODE, FORWARDER]), 1, id="what forwards beside a node that does not"
        ),
        pytest.param(claims(LEAF, STATION), 2, id="a station beside what may be a station"),
    ],
)
def test_a_station_behind_a_card_has_no_cable(given: Sequence[Claim], num: int) -> None:
    assert len(build_fabric(given).links) == num


@pytest.mark.parametrize("port", ["a", "z-port"])
def test_a_station_that_another_port_hears_alone_is_still_behind_a_node(port: str) -> None:
    host = report("h1", {"eth0": [LEAF]})
    leaf = report("l1", {"to-h1": [NODE, STATION], port: [STATION]})
    assert cables(build_fabric([host, leaf])) == {
        frozenset(("h1 eth0", "l1 to-h1")),
        frozenset((f"l1 {port}", "x1 p0")),
    }


@pytest.mark.parametrize(
    ("ports", "is_disputed"),
    [
        pytest.param({"eth0": [LEAF]}, True, id="no port is left"),
        pytest.param({"eth0": [LEAF], "eth1": []}, False, id="a port hears nothing"),
    ],
)
def test_a_cable_to_a_port_that_a_report_lacks_counts_only_if_a_port_may_be_it(
    ports: dict[str, list[Neighbor]], *, is_disputed: bool
) -> None:
    leaf = report("l1", {"to-h1": [heard_from("h1", "eth0")]})
    other = report("l2", {"swp1": [heard_from("h1", "eth9")]})
    fabric = build_fabric([report("h1", ports), leaf, other])
    (found,) = (link for link in fabric.links if "l2" in str(fabric.show_link(link)))
    assert found.is_disputed is is_disputed
