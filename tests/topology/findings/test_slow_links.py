"""Links that run slower than their peers."""

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
    """Return the claims about the cables; one port reports a quarter of its rate."""

    def slow(device_facts: Device) -> Device:
        ports = tuple(
            port_facts._replace(rate_bps=RATE) if port_facts.name == port else port_facts
            for port_facts in device_facts.ports
        )
        return Device(device_facts.kind, device_facts.name, device_facts.ids, ports)

    return [
        Claim(slow(claim.device), claim.origin) if claim.device.name == device else claim
        for claim in claims(CABLES)
    ]


@pytest.mark.parametrize(
    ("device", "port"),
    [
        pytest.param("h01", "eth0", id="a host's link"),
        pytest.param("leaf1", "up-spine2-0", id="an up-link, reported by its lower end"),
        pytest.param("spine1", "down-leaf2-1", id="an up-link, reported by its upper end"),
    ],
)
def test_it_names_the_slow_link_whichever_end_reports_it(device: str, port: str) -> None:
    findings = infer_from(slowed(device, port)).findings
    (slow,) = [finding for finding in findings if finding.kind is FindingKind.SLOW_LINK]
    assert (device, port) in slow.ports
    assert "100 Gb/s where its peers run at 400" in slow.message


def test_it_calls_no_link_slow_where_all_are_alike() -> None:
    findings = infer_from(claims(CABLES)).findings
    assert not [finding for finding in findings if finding.kind is FindingKind.SLOW_LINK]


@pytest.mark.parametrize(
    ("share", "is_slow"),
    [
        pytest.param(4, False, id="a quarter, which may be intended"),
        pytest.param(8, True, id="an eighth, at which no port comes up on purpose"),
    ],
)
def test_it_judges_a_link_without_peers_by_the_plane(share: int, *, is_slow: bool) -> None:
    cables = [
        *star("leaf1", hosts(0, 1)),
        *star("leaf2", hosts(4, 7)),
        *mesh(["leaf1", "leaf2"], ["spine1", "spine2"], parallel=2),
    ]

    def slow(findings: Device) -> Device:
        ports = tuple(finding._replace(rate_bps=4 * RATE // share) for finding in findings.ports)
        return Device(findings.kind, findings.name, findings.ids, ports)

    reports = [
        Claim(slow(claim.device), claim.origin) if claim.device.name == "h00" else claim
        for claim in claims(cables)
    ]
    findings = [
        finding for finding in infer_from(reports).findings if finding.kind is FindingKind.SLOW_LINK
    ]
    assert [any(end.device == "h00" for end in finding.ports) for finding in findings] == [
        True
    ] * is_slow
