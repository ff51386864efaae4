"""The document of a running server: built once for each state, and not too often."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

from generator.objects.pods import BoundPod
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.web.live_document import REST, LiveDocument, PackedDocument
from tests.generator.web.sites import TREE, outcome_of, sources_of, tree_of
from topology.model.facts import Finding, FindingKind, PortName, Severity


class BuildClock:
    """A clock that each build moves on by one second."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.num_builds = 0

    def __call__(self) -> float:
        return self.now_s

    def build(self) -> None:
        self.num_builds += 1
        self.now_s += 1


def live(clock: BuildClock, snapshot: Snapshot | None = None) -> LiveDocument:
    sources = sources_of(snapshot=lambda: snapshot)
    return LiveDocument(sources._replace(find_planes=clock.build), clock=clock)


def unpack(packed: PackedDocument | None) -> Any:  # noqa: ANN401 - a document
    assert packed
    return json.loads(gzip.decompress(packed.content))


def test_without_a_round_there_is_none() -> None:
    document = live(BuildClock())
    assert document.render() is None
    document.on_round(outcome_of(TREE, is_failed=True))
    assert document.render() is None


def test_readers_share_one_build_of_a_state() -> None:
    clock = BuildClock()
    document = live(clock)
    document.on_round(outcome_of(TREE, "node-1"))
    first = document.render()
    clock.now_s += 1000
    document.on_round(outcome_of(TREE, "node-1"))
    assert document.render() is first
    assert clock.num_builds == 1


def test_a_round_that_saw_nothing_keeps_the_document() -> None:
    document = live(BuildClock())
    document.on_round(outcome_of(TREE, "node-1"))
    first = document.render()
    document.on_round(outcome_of(tree_of("node-9"), is_failed=True))
    assert document.render() is first


def test_builds_take_a_small_part_of_the_time() -> None:
    clock = BuildClock()
    document = live(clock)
    document.on_round(outcome_of(TREE))
    first = document.render()
    document.on_round(outcome_of(tree_of("node-1", "node-3")))
    clock.now_s += REST - 0.5
    assert document.render() is first
    clock.now_s += 0.5
    assert "node-3" in unpack(document.render())["devices"]["name"]


def test_a_new_pod_is_a_new_state() -> None:
    clock = BuildClock()
    document = live(clock, build_snapshot(TREE, {}))
    document.on_round(outcome_of(TREE))
    first = document.render()
    assert unpack(first)["jobs"]["isKnown"] is False
    document.set_pods([BoundPod("ml/a", "node-1", None, {}), BoundPod("ml/a", "node-2", None, {})])
    clock.now_s += REST
    second = document.render()
    assert unpack(second)["jobs"]["gangs"][0]["pods"] == 2
    assert first
    assert second
    assert first.tag != second.tag


def test_findings_about_gangs_are_on_the_page() -> None:
    document = live(BuildClock())
    finding = Finding(
        *(FindingKind.RANK_ORDER, "ml/a", None, Severity.INFO, "Give the launcher the order."),
        ports=tuple(PortName(node, "") for node in TREE.nodes),
    )
    document.on_round(replace(outcome_of(TREE), gang_findings=(finding,)))
    found = unpack(document.render())
    assert [row["kind"] for row in found["findings"]] == ["rank-order"]
    assert "ml/a" in json.dumps(found["findings"])


def test_without_a_snapshot_the_jobs_are_unknown() -> None:
    document = live(BuildClock())
    document.on_round(outcome_of(TREE))
    assert unpack(document.render())["jobs"] is None
