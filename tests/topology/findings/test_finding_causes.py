"""A cause is one thing to mend, with both ends of its cables."""

import pytest

from topology.findings.finding_causes import list_causes
from topology.model.facts import Finding, FindingKind, PortName, Severity

DOWN, MISSING, SWAPPED = (
    FindingKind.DOWN_PORT,
    FindingKind.MISSING_LINK,
    FindingKind.SWAPPED_CABLE,
)
NIC, LEAF = PortName("node-1", "eth0"), PortName("leaf-1", "swp1")
OTHER_NIC, OTHER_LEAF = PortName("node-2", "eth0"), PortName("leaf-2", "swp9")


def find(kind: FindingKind, *ports: PortName) -> Finding:
    own = ports[0]
    return Finding(kind, own.device, own.port or None, Severity.WARNING, "m", ports)


def test_a_consequence_knows_the_far_end_of_a_port_that_is_down() -> None:
    (cause,) = list_causes([find(MISSING, NIC, LEAF), find(DOWN, NIC)], ["node-1"])
    assert cause.finding.kind is DOWN
    assert cause.cables == [(NIC, LEAF)]
    (alone,) = list_causes([find(DOWN, NIC)], ["node-1"])
    assert alone.cables == [(NIC, None)]


@pytest.mark.parametrize(
    ("kind", "ports", "cables"),
    [
        pytest.param(
            SWAPPED,
            (NIC, LEAF, OTHER_NIC, OTHER_LEAF),
            [(NIC, LEAF), (OTHER_NIC, OTHER_LEAF)],
            id="two cables that cross",
        ),
        pytest.param(
            MISSING,
            (NIC, PortName("node-1", "eth1"), LEAF),
            [(NIC, None), (PortName("node-1", "eth1"), LEAF)],
            id="a port whose far end is unknown, beside one",
        ),
        pytest.param(MISSING, (PortName("leaf-1", ""),), [], id="a device whose ports are unknown"),
        pytest.param(
            FindingKind.LOST_SWITCH, (LEAF, OTHER_LEAF), [], id="the neighbors of a lost switch"
        ),
    ],
)
def test_the_ends_of_a_cable_follow_one_another(
    kind: FindingKind, ports: tuple[PortName, ...], cables: list[tuple[PortName, PortName | None]]
) -> None:
    (cause,) = list_causes([find(kind, *ports)], [])
    assert cause.cables == cables
