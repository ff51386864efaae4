"""Subnets in reports: expected, covered by a saved sweep, or refusing a sweep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from generator.ingest.captures import SWEEPS
from generator.ingest.claims import build_claims
from generator.ingest.sources import Sources, read_inputs
from generator.ingest.subnets import derive_refusal_findings, find_uncovered_subnets
from tests.generator.sweep_reports import A, B, hca, node, swept
from tests.packed_reports import packed
from topology.model.claims import Claim, Origin, expand_claims
from topology.model.facts import Device, DeviceKind, FindingKind, Severity
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import (
    NeighborReport,
    ReportMetadata,
    ReportSpec,
    SweepStanding,
    render_report,
)
from topology.synthetic.sweep_output import render_ibnetdiscover


@pytest.mark.parametrize(
    ("reports", "unknown"),
    [
        pytest.param([node("n1")], (A,), id="unknown while its sweep is waited for"),
        pytest.param([node("n1"), swept("n2")], (), id="known once swept by whomever"),
        pytest.param([node("n1"), swept("n1", B)], (A,), id="unknown when another was swept"),
        pytest.param(
            [node("n1", sweeping=None)], (), id="not expected if no node takes part"
        ),
        pytest.param(
            [node("n1", sweeping=SweepStanding(refused=(A,))), swept("n1")],
            (),
            id="known by its last good sweep when it refuses the next",
        ),
    ],
)  # fmt: skip
def test_a_subnet_is(reports: list[NeighborReport], unknown: tuple[str, ...]) -> None:
    assert build_claims(packed(reports)).unknown_subnets == unknown


def claim(*ids: Id) -> Claim:
    return Claim(Device(DeviceKind.HOST, "h", ids), Origin.SWEEP)


GUID = hca(A).ids[0].value


@pytest.mark.parametrize(
    ("swept", "left"),
    [
        pytest.param([], (A,), id="nothing"),
        pytest.param([claim(Id(IdKind.NODE_GUID, GUID))], (), id="a HCA of it"),
        pytest.param([claim(Id(IdKind.PORT_GUID, GUID))], (), id="a port of it"),
        pytest.param([claim(Id(IdKind.PORT_GUID, "f" * 15 + "1"))], (A,), id="other ports alone"),
    ],
)
def test_a_saved_sweep_covers_a_subnet_if_it_contains(
    swept: list[Claim], left: tuple[str, ...]
) -> None:
    assert find_uncovered_subnets([A], packed([node("n1")]), swept) == left


def test_a_saved_sweep_beside_reports_makes_its_subnet_known(tmp_path: Path) -> None:
    reports, file = tmp_path / "reports", tmp_path / "sweep.txt"
    reports.mkdir()
    for one in (node("n1"), node("n2", hca(B))):
        name = f"{one.metadata.name}.json"
        (reports / name).write_text(json.dumps(render_report(one)))
    device = Device(DeviceKind.HOST, "n1", (Id(IdKind.NODE_GUID, GUID),))
    file.write_text(render_ibnetdiscover([device]))
    assert read_inputs(Sources(reports=reports)).unknown_subnets == (A, B)
    both = read_inputs(Sources(reports=reports, captures={SWEEPS: (file,)}))
    assert both.unknown_subnets == (B,)


@pytest.mark.parametrize(
    ("unknown", "severity", "words"),
    [
        pytest.param([A], Severity.ERROR, "its cables are unknown", id="unknown"),
        pytest.param([], Severity.WARNING, "its last good sweep still counts", id="known"),
    ],
)
def test_a_refusal_is_a_finding_with_advice(
    unknown: list[str], severity: Severity, words: str
) -> None:
    reports = [
        node("n1", hca(B), hca(A, "mlx5_4/1"), sweeping=SweepStanding(able=True, refused=(A,))),
        node("n2"),
    ]
    (found,) = derive_refusal_findings(packed(reports), unknown=unknown)
    assert (found.kind, found.severity) == (FindingKind.SWEEP_REFUSED, severity)
    assert (found.device, found.port) == ("n1", "mlx5_4/1")
    assert words in found.message
    assert "opensm-subnet.lst" in found.message


def halves(text: str) -> list[NeighborReport]:
    """Return a sweep in two parts."""
    whole = swept("n1", text=text)
    assert whole.spec.sweep is not None
    facts = whole.spec.sweep.facts
    cuts = [(0, facts[:8]), (1, facts[8:])]
    return [
        structs.replace(
            whole,
            metadata=ReportMetadata(name=f"n1.sweep.{part}"),
            spec=ReportSpec(sweep=structs.replace(whole.spec.sweep, part=part, of=2, facts=piece)),
        )
        for part, piece in cuts
    ]


OLD, NEW = (
    render_ibnetdiscover([Device(DeviceKind.HOST, name, (Id(IdKind.NODE_GUID, GUID),))])
    for name in ("old", "new")
)


@pytest.mark.parametrize(
    ("parts", "names", "unknown"),
    [
        pytest.param([*halves(NEW)], ["new"], (), id="all of one sweep"),
        pytest.param([halves(NEW)[0], halves(OLD)[1]], [], (A,), id="half old and half new"),
        pytest.param([*halves(OLD), halves(NEW)[0]], ["old"], (), id="a half beside a whole one"),
        pytest.param([halves(NEW)[1]], [], (A,), id="a half alone"),
    ],
)
def test_it_uses_a_sweep_only_if_it_has(
    parts: list[NeighborReport], names: list[str], unknown: tuple[str, ...]
) -> None:
    taken = build_claims(packed([node("n1"), *parts]))
    claims = expand_claims(taken.claims)
    swept_names = [one.device.name for one in claims if one.origin is Origin.SWEEP]
    assert (swept_names, taken.unknown_subnets) == (names, unknown)
