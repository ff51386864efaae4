"""Findings: sorted, and rendered as JSON objects."""

from dataclasses import replace

from topology.model.facts import (
    NO_IMPACT,
    Finding,
    FindingKind,
    Impact,
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
    assert sort_findings([SWAP, LONE, SWAP]) == (SWAP, LONE)


def test_what_mending_brings_most_comes_first() -> None:
    def cost(name: str, impact: Impact, severity: Severity = Severity.WARNING) -> Finding:
        return replace(LONE, device=name, severity=severity, impact=impact)

    half = Impact(cables=1, share=0.5, gone_share=0.5, num_nodes=8)
    rows = [
        cost("an-error", NO_IMPACT, Severity.ERROR),
        replace(cost("unknown", Impact(num_nodes=9, hides=True)), kind=FindingKind.PLANE_UNKNOWN),
        replace(cost("unmatched", Impact(num_nodes=2)), kind=FindingKind.UNMATCHED_NODES),
        cost("a-split", Impact(splits=True)),
        cost("nearly-all-gone", half._replace(share=0.25, gone_share=0.75)),
        cost("half-of-more-nodes", half._replace(num_nodes=7, share=0.5)),
        cost("an-eighth", half._replace(share=0.125, gone_share=0.125)),
        cost("felt-by-two-gangs", Impact(gangs=("a", "b"))),
        cost("felt-by-one-gang", Impact(gangs=("a",))),
        cost("hides-two-nodes", Impact(num_nodes=2, hides=True)),
        cost("hides-one-node", Impact(num_nodes=1, hides=True)),
        cost("an-info", half, Severity.INFO),
    ]
    assert list(sort_findings(rows[::-1])) == rows


def test_it_renders_a_finding_with_its_evidence() -> None:
    ends = [{"device": "leaf-a", "port": "1"}, {"device": "leaf-b", "port": "2"}]
    assert render_finding(SWAP) == {
        "kind": "swapped-cable",
        "severity": "warning",
        "subject": {"device": "leaf-a", "port": "1"},
        "message": "exchange them",
        "evidence": {"ports": ends, "swap": [ends]},
        "since": "2026-01-01T00:00:00Z",
        "impact": {
            "cables": None,
            "share": None,
            "goneShare": None,
            "places": [],
            "nodes": 0,
            "gpus": None,
            "gangs": None,
            "splits": False,
            "hides": False,
        },
    }


def test_it_renders_absent_fields_as_null() -> None:
    document = render_finding(LONE)
    assert document["subject"] == {"device": "leaf-c", "port": None}
    assert document["evidence"] == {"ports": [{"device": "leaf-c", "port": ""}], "swap": []}
    assert document["since"] is None
