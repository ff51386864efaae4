"""A tier of NVLink domains through the commands: tree, plan and placement."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.generator.folders import StoreFolder
from tests.generator.scenes import RAILS, Scene, run
from tests.generator.server.days import Day
from tests.topology.inference.test_nvlink_domains import nvlink
from topology.model.facts import Medium
from topology.reports.neighbor_report import build_report
from topology.synthetic import FabricKind, SyntheticSpec, report_claims

HOSTS_PER_CLIQUE = 2


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """Write reports; all but the last host's have an NVLink clique, two hosts each."""
    scene = Scene.of(tmp_path / "scene", RAILS)
    folder = scene.reports()
    store = StoreFolder(scene.root / "store")
    for claim in report_claims(scene.damaged):
        at = scene.hosts.index(claim.report) if claim.report in scene.hosts else -1
        if at < len(scene.hosts) - 1 and at >= 0:
            ports = (*claim.device.ports, nvlink(at // HOSTS_PER_CLIQUE))
            store.write_report(build_report(replace(claim.device, ports=ports), name=claim.report))
    return folder


def place(reports: Path, tmp_path: Path, count: int) -> Any:  # noqa: ANN401 - the document
    request = {
        "apiVersion": "toponaut.io/v1alpha1",
        "kind": "PlacementRequest",
        "spec": {"gang": "job", "groups": [{"name": "w", "count": count, "required": "nvlink"}]},
    }
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request), encoding="utf-8")
    return run("place", "-f", path, "--reports", reports, "-o", "json").document


def test_it_prints_cliques_as_the_lowest_tier(reports: Path) -> None:
    tree = run("tree", "--reports", reports, "-o", "json").document
    assert [tier["name"] for tier in tree["tiers"]] == ["nvlink", "leaf", "spine", "core"]
    sizes = sorted(len(domain["nodes"]) for domain in tree["tiers"][0]["domains"])
    assert sizes == [1, 1, *[2] * 7]
    assert all("nodes" not in domain for domain in tree["tiers"][1]["domains"])


def test_it_plans_a_hypernode_per_clique_before_those_of_leaves(
    reports: Path, tmp_path: Path
) -> None:
    (tmp_path / "none").mkdir()
    observed = tmp_path / "none"
    plan = run("plan", "--reports", reports, "--observed", observed, "-o", "json").document
    tiers = [action["tier"] for action in plan]
    assert tiers == sorted(tiers)
    assert tiers.count(1) == 9


def test_it_places_a_gang_that_requires_a_clique_within_one(reports: Path, tmp_path: Path) -> None:
    assert place(reports, tmp_path, 2)["tier"] == "nvlink"
    assert not place(reports, tmp_path, 3)["feasible"]


def test_an_honest_change_is_written_beside_two_nodes_that_report_a_clique(tmp_path: Path) -> None:
    day = Day(tmp_path, SyntheticSpec(FabricKind.DUAL_HOMED, 64, radix=32, medium=Medium.ETHERNET))
    day.tick()
    before = day.placed()
    for claim in report_claims(day.scene.damaged):
        if claim.report in day.some(2):
            ports = (*claim.device.ports, nvlink(1))
            made = build_report(replace(claim.device, ports=ports), name=claim.report)
            day.store.write_report(made)
    gone = day.scene.hosts[-1]
    day.lose([gone])
    day.tick()
    assert day.conditions()["Ready"] == "HyperNodesWritten"
    assert day.placed() == before - {gone}
    findings = day.fabric().status.findings
    assert [row.count for row in findings if row.kind == "tier-mismatch"] == [1]
