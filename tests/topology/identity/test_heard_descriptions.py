"""What most hosts hear describes a device, whatever one host says about it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.topology.cables import claims, heard_from, hosts, mac_of, mesh, report, star
from topology.identity.claim_facts import ClaimTable, read_facts
from topology.identity.heard_descriptions import HeardDescriptions, limit_claims
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim
from topology.model.facts import DeviceKind, Neighbor
from topology.model.ids import Id, IdKind

CABLES = [
    *star("leaf1", hosts(1, 4)),
    *star("leaf2", hosts(5, 8)),
    *mesh(["leaf1", "leaf2"], ["s1"]),
]
HONEST = claims(CABLES, silent=("leaf1", "leaf2", "s1"))
LEAF = heard_from("leaf1", "to-h00-eth0")
OTHER_LEAF = Id(IdKind.CHASSIS_ID, mac_of("leaf2"), "mac")


def limit(given: Sequence[Claim]) -> list[Claim]:
    """Return all claims after the limit, in the order given."""
    heard_descriptions = HeardDescriptions()
    for claim in given:
        heard_descriptions.add(claim.origin, claim.device)
    table = ClaimTable(list(given), [read_facts(claim.device) for claim in given])
    changed = limit_claims(table, heard_descriptions).changed_claims
    return [changed.get(number, claim) for number, claim in enumerate(given)]


def first_liar(*heard: Neighbor, name: str = "") -> Claim:
    """Return the report of the node that comes first in every order."""
    claim = report("h00", {f"eth{number}": [one] for number, one in enumerate(heard)})
    device = claim.device
    return Claim(replace(device, name=name or device.name), claim.origin)


def switches(*more: Claim) -> dict[str, set[str]]:
    """Return the hosts that have a cable to each switch, by the name of the switch."""
    fabric = build_fabric([*HONEST, *more])
    found: dict[str, set[str]] = {}
    for link in fabric.links:
        low, high = sorted(
            (fabric.devices[fabric.ports[end].device] for end in (link.a, link.b)),
            key=lambda device: device.kind is DeviceKind.SWITCH,
        )
        if high.kind is DeviceKind.SWITCH:
            found.setdefault(high.name, set()).add(low.name)
    return {name: nodes - {"h00"} for name, nodes in found.items() if nodes - {"h00"}}


@pytest.mark.parametrize(
    "lie",
    [
        LEAF._replace(device_name="evil"),
        LEAF._replace(kind=DeviceKind.HOST),
        LEAF._replace(device_ids=tuple(sorted((*LEAF.device_ids, OTHER_LEAF)))),
        LEAF._replace(
            device_ids=tuple(sorted((*LEAF.device_ids, Id(IdKind.MAC, "00:00:00:00:00:01"))))
        ),
        LEAF._replace(device_ids=(Id(IdKind.CHASSIS_ID, "02:00:00:00:00:01", "mac"),)),
        LEAF._replace(device_ids=()),
        LEAF._replace(device_ids=(), kind=DeviceKind.AGGREGATION),
        LEAF._replace(device_ids=(), kind=DeviceKind.HOST),
    ],
    ids=[
        "a name",
        "a kind",
        "two switches as one",
        "another id",
        "a twin",
        "no id",
        "no id, and a kind that has no place in the tree",
        "no id, and a host",
    ],
)
def test_one_host_changes_no_switch(lie: Neighbor) -> None:
    expected = {"leaf1": set(hosts(1, 4)), "leaf2": set(hosts(5, 8))}
    assert switches(first_liar(lie)) == expected


@pytest.mark.parametrize("name", ["leaf1", "h05", "LEAF1.example"])
def test_a_host_has_not_the_name_of_another_device(name: str) -> None:
    limited = limit([first_liar(LEAF, name=name), *HONEST])
    assert limited[0].device.name == "h00"
    assert limited[1:] == list(HONEST)


def test_a_host_keeps_a_name_of_its_own() -> None:
    claim = first_liar(LEAF, name="gpu-17")
    assert limit([claim, *HONEST])[0] is claim


def test_claims_without_a_contradiction_are_the_same_objects() -> None:
    limited = limit(HONEST)
    assert all(new is old for new, old in zip(limited, HONEST, strict=True))


@given(st.permutations([*HONEST, first_liar(LEAF._replace(device_name="evil"))]))
def test_the_order_of_claims_has_no_effect_on_testimony(shuffled: list[Claim]) -> None:
    names = {
        neighbor.device_name
        for claim in limit(shuffled)
        for port in claim.device.ports
        for neighbor in port.neighbors
    }
    assert names == {"leaf1", "leaf2"}


def ports_of(leaf: str, *nodes: str, chassis: str = "leaf1") -> list[Claim]:
    """Return reports of hosts at the first ports of a leaf that sends this chassis id."""
    ids = heard_from(chassis, "").device_ids
    entries = [heard_from(leaf, f"swp{number}") for number in range(1, len(nodes) + 1)]
    return [
        report(node, {"eth0": [entry._replace(device_ids=ids)]})
        for node, entry in zip(nodes, entries, strict=True)
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            [*ports_of("leaf1", *hosts(1, 4)), *ports_of("leaf2", *hosts(5, 8))],
            {"leaf1": set(hosts(1, 4)), "leaf2": set(hosts(5, 8))},
            id="two leaves with cables at the same ports",
        ),
        pytest.param(
            [*ports_of("leaf1", *hosts(1, 4)), *ports_of("leaf2", "h00", "h00", "h00")],
            {"leaf1": set(hosts(1, 4))},
            id="one host that names the leaf otherwise",
        ),
        pytest.param(
            ports_of("leaf1", *hosts(1, 4))[:2] + ports_of("new-name", *hosts(1, 4))[2:],
            {"leaf1": set(hosts(1, 4))},
            id="one leaf whose new name only some hosts have heard",
        ),
    ],
)
def test_two_switches_with_one_chassis_id_are_told_apart_by_their_ports(
    given: list[Claim], expected: dict[str, set[str]]
) -> None:
    fabric = build_fabric(given)
    nodes: dict[str, set[str]] = {}
    for link in fabric.links:
        host, leaf = sorted(fabric.ports[end].device for end in (link.a, link.b))
        nodes.setdefault(fabric.devices[leaf].name, set()).add(fabric.devices[host].name)
    assert {name: found - {"h00"} for name, found in nodes.items() if found - {"h00"}} == expected
    messages = [finding.message for finding in fabric.findings]
    assert any("it identifies neither" in message for message in messages) == (len(expected) > 1)


def test_each_of_three_switches_with_one_chassis_id_is_named() -> None:
    given = [claim for leaf in "123" for claim in ports_of(f"leaf{leaf}", f"h{leaf}1", f"h{leaf}2")]
    found = " ".join(finding.message for finding in build_fabric(given).findings)
    assert all(name in found for name in ("leaf1", "leaf2", "leaf3"))
