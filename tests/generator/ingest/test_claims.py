"""Reports to claims: which sweep counts, and which claims are built again."""

from __future__ import annotations

import random  # noqa: TID251 - a seeded order for the reports
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from generator.ingest.captures import read_captures
from generator.ingest.claims import ClaimBuilder, build_claims
from tests.effort import examples
from tests.generator.scenes import RAILS, Scene
from tests.packed_reports import packed
from topology.model.claims import Origin, SweptClaims, expand_claims
from topology.model.facts import Device, DeviceKind
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import (
    NeighborReport,
    ReportStatus,
    SweepPart,
    build_report,
)
from topology.reports.sweep_parts import split_sweep

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
PERIOD = timedelta(seconds=60)
SWEEP = (
    'Switch 2 "S-0002c9000000000{0}" # "leaf"\n'
    '[1] "H-0002c9000000000a"[1] # "node-1 mlx5_0" lid 1 4xNDR\n'
    'Ca 1 "H-0002c9000000000a" # "node-1 mlx5_0"\n'
    '[1] "S-0002c9000000000{0}"[1] # "leaf" lid 2 4xNDR\n'
)


def report(name: str, age: timedelta | None = None) -> NeighborReport:
    device = Device(DeviceKind.HOST, name, (Id(IdKind.NODE_NAME, name),))
    observed = None if age is None else (NOW - age).isoformat()
    return build_report(device, name=name, status=ReportStatus(observed_at=observed))


def sweep(node: str, digit: int, minute: int, subnet: str = "fe80") -> list[NeighborReport]:
    status = ReportStatus(observed_at=f"2026-11-21T12:{minute:02}:00+00:00")
    parts = split_sweep(SWEEP.format(digit), node=node, subnet=subnet)
    return [structs.replace(part, status=status) for part in parts]


def swept_switches(reports: list[NeighborReport]) -> list[str]:
    return sorted(
        found.value
        for claim in expand_claims(build_claims(packed(reports)).claims)
        if claim.origin is Origin.SWEEP and claim.device.kind is DeviceKind.SWITCH
        for found in claim.device.ids
        if found.kind is IdKind.NODE_GUID
    )


def guid(digit: int) -> str:
    return f"0002c9000000000{digit}"


def test_it_uses_the_newest_sweep_of_a_subnet() -> None:
    assert swept_switches([*sweep("a", 1, 1), *sweep("b", 2, 2)]) == [guid(2)]


def test_a_cut_sweep_does_not_count() -> None:
    text = SWEEP.format(2).partition("Ca ")[0]
    status = ReportStatus(observed_at="2026-11-21T12:02:00+00:00")
    (part,) = split_sweep(text, node="b", subnet="fe80")
    cut = structs.replace(part, status=status)
    assert swept_switches([*sweep("a", 1, 1), cut]) == [guid(1)]
    read = build_claims(packed([cut]))
    assert read.unknown_subnets == ("fe80",)
    assert "the sweep is cut" in str(read.problems[0])


def test_it_uses_one_sweep_of_each_subnet() -> None:
    assert swept_switches([*sweep("a", 1, 1), *sweep("b", 2, 2, subnet="fe81")]) == [
        guid(1),
        guid(2),
    ]


def test_it_falls_back_to_the_older_sweep_when_the_newest_is_damaged() -> None:
    (broken,) = sweep("b", 2, 2)
    part = broken.spec.sweep
    assert part is not None
    spoiled = structs.replace(part, facts="AAAA")
    reports = [
        *sweep("a", 1, 1),
        structs.replace(broken, spec=structs.replace(broken.spec, sweep=spoiled)),
    ]
    assert swept_switches(reports) == [guid(1)]
    (problem,) = build_claims(packed(reports)).problems
    assert "b.sweep.* of subnet fe80: sweep damaged" in str(problem)


def test_it_shows_the_names_of_reports_and_subnets_safely() -> None:
    (part,) = sweep("a", 1, minute=1, subnet="\x1b[31mfe80")
    assert part.spec.sweep is not None
    damaged = structs.replace(part.spec.sweep, facts="????")
    spec = structs.replace(part.spec, sweep=damaged)
    (problem,) = build_claims(packed([structs.replace(part, spec=spec)])).problems
    assert str(problem).startswith("a.sweep.* of subnet \\x1b[31mfe80: sweep damaged")


def test_it_uses_no_sweep_with_a_missing_part() -> None:
    (whole,) = sweep("a", 1, 1)
    part = whole.spec.sweep
    assert isinstance(part, SweepPart)
    half = structs.replace(part, of=2)
    taken = build_claims(
        packed([structs.replace(whole, spec=structs.replace(whole.spec, sweep=half))])
    )
    assert taken.claims == ()
    assert "sweep incomplete: 1 of 2 parts" in str(taken.problems[0])


def test_it_builds_the_same_claims_in_any_order(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    reports = [*sweep("a", 1, 1), *sweep("b", 2, 1), *(report(name) for name in scene.hosts)]
    shuffled = random.Random(7).sample(reports, len(reports))  # noqa: S311 - no secret
    assert set(build_claims(packed(reports)).claims) == set(build_claims(packed(shuffled)).claims)


def test_it_uses_a_report_only_for_the_node_it_is_named_after() -> None:
    device = Device(DeviceKind.HOST, "node-2", (Id(IdKind.NODE_NAME, "node-2"),))
    taken = build_claims(packed([build_report(device, name="node-1"), report("node-2")]))
    names = [
        one.value
        for claim in expand_claims(taken.claims)
        for one in claim.device.ids
        if one.kind is IdKind.NODE_NAME
    ]
    assert sorted(names) == ["node-1", "node-2"]
    (problem,) = taken.problems
    assert "report node-1" in str(problem)
    assert "node-2" in str(problem)


def test_it_returns_the_nodes_that_reported_about_themselves() -> None:
    assert build_claims(packed([report("a"), *sweep("b", 1, 1)])).reporters == {"a"}


@given(st.binary(max_size=120), st.sampled_from([b"", b'{"lldp":', b'{"lldp":[{"interface":[']))
@settings(max_examples=examples(60))
def test_it_reads_a_capture_of_any_bytes_without_raising(
    tmp_path_factory: pytest.TempPathFactory, rest: bytes, head: bytes
) -> None:
    folder = tmp_path_factory.mktemp("captures")
    (folder / "node.neighbors.json0").write_bytes(head + rest)
    (folder / "node.chassis.json0").write_bytes(rest)
    claims, problems = read_captures(folder)
    assert claims or problems


def test_it_parses_a_sweep_once_while_it_is_unchanged() -> None:
    intake = ClaimBuilder()
    parts = sweep("node-1", 1, 0)
    first, again = (
        [
            claim.devices
            for claim in intake.build_claims(given).claims
            if isinstance(claim, SweptClaims)
        ]
        for given in (packed(parts), list(packed(parts)))
    )
    assert first
    assert all(one is other for one, other in zip(first, again, strict=True))
    assert intake.build_claims([]).claims == ()
