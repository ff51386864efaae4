"""A gang of which some pods run: the rest is placed by the rules of the whole gang."""

from __future__ import annotations

import copy
from random import Random  # noqa: TID251 - seeded by its caller
from typing import Any

from generator.manifests.gang_pods import (
    PODS,
    GroupPods,
    MemberPod,
    RunningRow,
    split_gang,
)
from generator.manifests.objects import Manifests, read_objects
from generator.manifests.tier_names import LevelNames
from generator.placement.cluster.nodes import RunningGang, RunningPods
from generator.placement.cluster.snapshot import Snapshot, with_running
from generator.placement.engine import place
from generator.placement.presets import Preset
from generator.placement.problem.constraints import is_allowed
from generator.placement.problem.problem import build_problem
from generator.placement.quantities import count_request
from generator.placement.request import parse_request
from tests.effort import examples
from tests.generator.manifests.scenes import leaf_rows, placed_pod
from tests.random_cases.draw import Case, draw_case
from tests.vectors.scenes import document_of, snapshot_of


def unbound(case: Case) -> Case:
    """Return a case without what counts only new pods, and without members that may be left out.

    Of members of which one is enough, another one may be completed than the one that runs in part.
    """
    for row in case["request"]["groups"]:
        if "children" in row:
            row.pop("min", None)
    for row in leaf_rows(case["request"]["groups"]):
        row.pop("spread", None)
    for name in ("max_domains", "preemption", "priority"):
        case["request"].pop(name, None)
    case.pop("running", None)
    return case


def start_some(
    spec: dict[str, Any], assignment: dict[str, list[str | None]], rng: Random
) -> tuple[Manifests, dict[str, dict[int, str]]]:
    """Let random pods of a placement run; return them as a file, and per group by index."""
    documents, started = [], {}
    for row in leaf_rows(spec["groups"]):
        picked = rng.choice((0.0, 0.5, 1.0))
        on = {
            index: node
            for index, node in enumerate(assignment[row["name"]])
            if node is not None and rng.random() < picked
        }
        started[row["name"]] = on
        documents += [placed_pod(f"{row['name']}-{index}", node) for index, node in on.items()]
    manifests = read_objects(list(enumerate(documents, 1)), LevelNames())
    pods = iter(manifests.pods)
    for row in leaf_rows(spec["groups"]):
        if started[row["name"]]:
            members = tuple(MemberPod(next(pods), index) for index in started[row["name"]])
            row[PODS] = GroupPods(members[0].pod.field, members)
    return manifests, started


def running_gang(rows: tuple[RunningRow, ...]) -> RunningGang:
    pods = [
        RunningPods(
            row.node, count_request(row.request), 1, row.group,
            () if row.rank is None else (row.rank,),
        )
        for row in rows
    ]  # fmt: skip
    return RunningGang("self", tuple(pods))


def find_fault(seed: int) -> str:
    """Start some pods of a placed gang; return how the rest of the gang is placed wrongly."""
    rng = Random(seed)  # noqa: S311 - test data
    case = unbound(draw_case(seed))
    preset = [*Preset][seed % len(Preset)]
    document, snapshot = document_of(case, preset.value), snapshot_of(case)
    whole = place(snapshot, parse_request(document))
    if not whole.is_feasible:
        return ""
    spec = copy.deepcopy(document["spec"])
    nodes = {name: list(row) for name, row in whole.assignment.items()}
    manifests, started = start_some(spec, nodes, rng)
    if all(len(started[name]) == len(row) - row.count(None) for name, row in nodes.items()):
        return ""  # the others have no place, with or without those that run
    parts = split_gang(spec, manifests)
    rest = parse_request(document | {"spec": parts.spec})
    found = place(with_running(snapshot, running_gang(parts.running)), rest)
    if not found.is_feasible:
        return f"{seed}, {preset}: {found.reason} with {started}"
    if not _keeps_rules(snapshot, document, started, dict(found.assignment)):
        return f"{seed}, {preset}: {dict(found.assignment)} beside {started} breaks a rule"
    return ""


def _keeps_rules(
    snapshot: Snapshot,
    document: dict[str, Any],
    started: dict[str, dict[int, str]],
    added: dict[str, tuple[str | None, ...]],
) -> bool:
    """Return whether the pods that ran and the new ones keep the rules of the whole gang."""
    gang = parse_request(document)
    positions = []
    for row in gang.groups:
        new = iter([node for node in added.get(row.name, ()) if node is not None])
        both = [started[row.name].get(index) or next(new, None) for index in range(row.count)]
        positions.append([snapshot.position_of[node] for node in both if node is not None])
    return is_allowed(build_problem(snapshot, gang), positions)


def test_it_places_the_rest_of_a_gang_by_the_rules_of_the_whole() -> None:
    assert [fault for seed in range(examples(1200)) if (fault := find_fault(seed))] == []
