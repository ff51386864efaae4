"""Compare the engine's answers to a case, under every preset, with all its placements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from generator.placement.presets import Preset
from tests.random_cases.draw import draw_case
from tests.random_cases.objective import Case, Cluster, Judge, Parts
from tests.random_cases.search import Best, TooLargeError, find_best, victim_keys
from tests.vectors.hard_rules import rules
from tests.vectors.runner import answer

MAX_REDRAWS = 20


def faults_of_seed(seed: int) -> list[str]:
    """Return what is wrong with the engine's answers to the case of a seed."""
    for attempt in range(MAX_REDRAWS):
        case = draw_case(seed * MAX_REDRAWS + attempt)
        try:
            best = find_best(case)
        except TooLargeError:
            continue
        return [f"{case['id']}: {fault}" for fault in case_faults(case, best)]
    return []


def case_faults(case: Case, best: Best | None) -> Iterator[str]:
    """Yield the faults of the answers to one case."""
    for preset in Preset:
        found = answer(case, preset.value)
        for fault in _answer_faults(case, best, found):
            yield f"{preset}: {fault}"
        if preset is Preset.OPTIMAL and best is not None and found["feasible"]:
            yield from _vector_faults(case, best, found)


def _answer_faults(case: Case, best: Best | None, found: dict[str, Any]) -> Iterator[str]:
    """Yield hard rules that an answer breaks."""
    if found["feasible"] != (best is not None):
        if found["feasible"] or found["proved"]:
            yield f"feasible is {found['feasible']}"
        return
    if not found["feasible"]:
        return
    victims = rules.named_victims(case, list(found["victims"]))
    yield from rules.victim_faults(case, victims)
    yield from rules.faults(rules.Scene(case, victims), found["assignment"])


def _vector_faults(case: Case, best: Best, found: dict[str, Any]) -> Iterator[str]:
    """Yield the difference between an answer's objective vector and the best."""
    victims = rules.named_victims(case, list(found["victims"]))
    if bool(victims) != best.has_victims:
        yield f"victims are {sorted(victims)}"
        return
    judge = Judge(case, Cluster(case, frozenset(victims)))
    parts, strategy = _parts_of(judge, found["assignment"]), found["objective"]["strategy"]
    if victims:
        policy = case["request"]["preemption"]
        keys = victim_keys(case, sorted(victims))
        vector = judge.prefix(parts, strategy, keys, policy)
    elif len(judge.scarcest) > 1:
        return  # The slots left depend on which of several kinds counts.
    else:
        vector = judge.vector(parts, strategy)
    if vector > best.vector and found["proved"]:
        yield f"{vector} is proved, {best.vector} is better"
    if vector < best.vector:
        yield f"{vector} is better than {best.vector}, the best of all placements"


def _parts_of(judge: Judge, assignment: Mapping[str, list[str | None]]) -> Parts:
    """Return the slices of every group, cut in index order."""
    parts: dict[str, list[list[str]]] = {}
    for name, row in assignment.items():
        placed = [node for node in row if node is not None]
        slices = judge.by_name[name].get("slices")
        size = slices[-1]["size"] if slices else max(len(placed), 1)
        parts[name] = [placed[at : at + size] for at in range(0, len(placed), size)]
    return parts
