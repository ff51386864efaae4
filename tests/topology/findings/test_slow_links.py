"""Links that run slower than their fellows."""

import pytest

from tests.topology.cables import claims, hosts, mesh, star
from tests.topology.verdicts import infer_from
from topology.model.claims import Claim
from topology.model.facts import Device, FindingKind

CABLES = [
    *star("leaf1", hosts(0, 3)),
    *star("leaf2", hosts(4, 7)),
    *mesh(["leaf1", "leaf2"], ["spine1", "spine2"], parallel=2),
]
RATE = 100_000_000_000


def slowed(device: str, port: str) -> list[Claim]:
    """Return the claims about the cables, one port of which tells a quarter of its rate."""

    def slow(found: Device) -> Device:
        ports = tuple(
            one._replace(rate_bps=RATE) if one.name == port else one for one in found.ports
        )
        return Device(found.kind, found.name, found.ids, ports)

    return [
        Claim(slow(claim.device), claim.origin) if claim.device.name == device else claim
        for claim in claims(CABLES)
    ]


@pytest.mark.parametrize(
    ("device", "port"),
    [
        pytest.param("h01", "eth0", id="a host's link"),
        pytest.param("leaf1", "up-spine2-0", id="an up-link, told by its lower end"),
        pytest.param("spine1", "down-leaf2-1", id="an up-link, told by its upper end"),
    ],
)
def test_it_names_the_slow_link_whichever_end_tells(device: str, port: str) -> None:
    found = infer_from(slowed(device, port)).findings
    (slow,) = [one for one in found if one.kind is FindingKind.SLOW_LINK]
    assert (device, port) in slow.ports
    assert "100 Gb/s where its fellows run at 400" in slow.message


def test_it_calls_no_link_slow_where_all_are_alike() -> None:
    found = infer_from(claims(CABLES)).findings
    assert not [one for one in found if one.kind is FindingKind.SLOW_LINK]


@pytest.mark.parametrize(
    ("share", "is_slow"),
    [
        pytest.param(4, False, id="a quarter, which may be meant"),
        pytest.param(8, True, id="an eighth, at which no port comes up on purpose"),
    ],
)
def test_it_judges_a_link_without_fellows_by_the_plane(share: int, *, is_slow: bool) -> None:
    cables = [
        *star("leaf1", hosts(0, 1)),
        *star("leaf2", hosts(4, 7)),
        *mesh(["leaf1", "leaf2"], ["spine1", "spine2"], parallel=2),
    ]

    def slow(found: Device) -> Device:
        ports = tuple(one._replace(rate_bps=4 * RATE // share) for one in found.ports)
        return Device(found.kind, found.name, found.ids, ports)

    told = [
        Claim(slow(claim.device), claim.origin) if claim.device.name == "h00" else claim
        for claim in claims(cables)
    ]
    found = [one for one in infer_from(told).findings if one.kind is FindingKind.SLOW_LINK]
    assert [any(end.device == "h00" for end in one.ports) for one in found] == [True] * is_slow
