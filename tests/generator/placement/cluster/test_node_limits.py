"""The most pods of a group on one node, whichever way an answer is found."""

from __future__ import annotations

import copy
from collections import Counter
from random import Random  # noqa: TID251 - seeded by its caller
from typing import Any

from generator.placement.batch.joint import place_batch
from generator.placement.cluster.nodes import NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.engine import place
from generator.placement.presets import Preset
from tests.effort import examples
from tests.generator.placement.documents import racks, request, workers
from tests.random_cases.draw import Case, draw_case
from tests.random_cases.search import TooLargeError, find_best
from tests.vectors.runner import answer

LIMIT = "example.com/limit"
PRESETS = sorted(set(Preset) - {Preset.OPTIMAL})


def first_leaf(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return first_leaf(rows[0]["children"]) if "children" in rows[0] else rows[0]


def with_limit(case: Case, most: int) -> tuple[Case, Case, str]:
    """Return a case with a limit of its first group, the same as a resource, and the group."""
    limited: dict[str, Any] = copy.deepcopy(dict(case))
    explicit: dict[str, Any] = copy.deepcopy(dict(case))
    row, other = (first_leaf(one["request"]["groups"]) for one in (limited, explicit))
    row["max_per_node"] = most
    other["request"][LIMIT] = 1
    for node in explicit["nodes"].values():
        node["capacity"][LIMIT] = most
    return limited, explicit, row["name"]


def runs_already(case: Case) -> bool:
    gang = case["request"].get("gang", "self")
    return any(row["gang"] == gang for row in case.get("running", ()))


def most_on_a_node(found: dict[str, Any], name: str) -> int:
    nodes = found.get("assignment", {}).get(name, ())
    return max(Counter(filter(None, nodes)).values(), default=0)


def test_it_fits_as_if_a_resource_bounded_the_pods() -> None:
    faults: list[tuple[int, Preset]] = []
    num_bound = 0
    for seed in range(examples(300)):
        case, most = draw_case(seed), Random(seed).randint(1, 2)  # noqa: S311 - test data
        limited, explicit, name = with_limit(case, most)
        try:
            best = None if runs_already(case) else find_best(explicit)
        except TooLargeError:
            continue
        if runs_already(case):
            continue
        num_bound += most_on_a_node(answer(case), name) > most
        for preset in (Preset.OPTIMAL, PRESETS[seed % len(PRESETS)]):
            found = answer(limited, preset)
            is_wrong = found["feasible"] != (best is not None)
            if is_wrong and (found["feasible"] or found["proved"]):
                faults.append((seed, preset))
            if most_on_a_node(found, name) > most:
                faults.append((seed, preset))
    assert faults == []
    assert num_bound, "no case in which the limit binds"


def test_running_pods_of_the_group_count() -> None:
    nodes = {f"n{at}": NodeSpec(f"n{at}", {"slots": 8}) for at in range(2)}
    gang = RunningGang("llama", (RunningPods("n0", {"slots": 1}, count=2, group="workers"),))
    snapshot = build_snapshot(racks(2), nodes, [gang])
    grown = request(gang="llama", groups=workers(3, max_per_node=2))
    assert not place(snapshot, grown).is_feasible
    assert place(snapshot, request(gang="llama", groups=workers(2, max_per_node=2))).assignment == {
        "workers": ("n1", "n1")
    }
    assert place(snapshot, request(groups=workers(4, max_per_node=2))).is_feasible


def test_each_group_has_its_own_limit() -> None:
    nodes = {"n0": NodeSpec("n0", {"slots": 8})}
    groups = [
        {"name": "a", "count": 2, "max_per_node": 2},
        {"name": "b", "count": 1, "max_per_node": 1},
        {"name": "c", "count": 5},
    ]
    found = place(build_snapshot(racks(1), nodes), request(groups=groups))
    assert {name: len(row) for name, row in found.assignment.items()} == {"a": 2, "b": 1, "c": 5}


def test_gangs_of_a_batch_keep_their_limits() -> None:
    nodes = {f"n{at}": NodeSpec(f"n{at}", {"slots": 4}) for at in range(4)}
    snapshot = build_snapshot(racks(2, 2), nodes)
    gangs = [request(gang=f"g{at}", groups=workers(4, max_per_node=1)) for at in range(5)]
    found = place_batch(snapshot, gangs).placements
    assert [row.is_feasible for row in found] == [True, True, True, True, False]
    assert all(len(set(row.assignment["workers"])) == 4 for row in found[:4])
