"""Findings: sorted, and rendered as JSON objects."""

from topology.model.facts import (
    Finding,
    FindingKind,
    PortName,
    Severity,
    render_finding,
    sort_findings,
)

SWAP = Finding(
    kind=FindingKind.SWAPPED_CABLE,
    device="leaf-a",
    port="1",
    severity=Severity.WARNING,
    message="exchange them",
    ports=(PortName("leaf-a", "1"), PortName("leaf-b", "2")),
    swap=((PortName("leaf-a", "1"), PortName("leaf-b", "2")),),
    since="2026-01-01T00:00:00Z",
)
LONE = Finding(FindingKind.ISLAND, "leaf-c", None, Severity.INFO, "alone")


def test_it_sorts_findings_and_drops_repeats() -> None:
    assert sort_findings([SWAP, LONE, SWAP]) == (LONE, SWAP)


def test_it_renders_a_finding_with_its_evidence() -> None:
    ends = [{"device": "leaf-a", "port": "1"}, {"device": "leaf-b", "port": "2"}]
    assert render_finding(SWAP) == {
        "kind": "swapped-cable",
        "severity": "warning",
        "subject": {"device": "leaf-a", "port": "1"},
        "message": "exchange them",
        "evidence": {"ports": ends, "swap": [ends]},
        "since": "2026-01-01T00:00:00Z",
    }


def test_it_renders_absent_fields_as_null() -> None:
    document = render_finding(LONE)
    assert document["subject"] == {"device": "leaf-c", "port": None}
    assert document["evidence"] == {"ports": [{"device": "leaf-c", "port": ""}], "swap": []}
    assert document["since"] is None
