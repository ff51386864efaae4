"""Every placement of a small case, and the best of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement, islice, product
from typing import Any, NamedTuple

from tests.random_cases.objective import Case, Cluster, Judge, Parts, leaf_groups
from tests.vectors.hard_rules import rules

MAX_PLACEMENTS = 2_000
"""Cases with more placements are left out."""


class Best(NamedTuple):
    """The best placement of a case."""

    vector: tuple[int, ...]
    has_victims: bool


class TooLargeError(Exception):
    """A case has too many placements."""


def find_best(case: Case) -> Best | None:
    """Return the best vector over all placements; None if none keeps every hard rule.

    Raises:
        TooLargeError: there are more than `MAX_PLACEMENTS` placements.
    """
    calm = _best_with(case, frozenset(), None)
    if calm is not None or "preemption" not in case["request"]:
        return None if calm is None else Best(calm, has_victims=False)
    pairs = sorted(rules.evictable(case))
    vectors = [
        found
        for many in range(1, len(pairs) + 1)
        for chosen in combinations(pairs, many)
        if not list(rules.victim_faults(case, set(chosen)))
        if (found := _best_with(case, frozenset(chosen), victim_keys(case, chosen))) is not None
    ]
    return Best(min(vectors), has_victims=True) if vectors else None


def victim_keys(case: Case, chosen: Sequence[tuple[str, str]]) -> tuple[int, ...]:
    """Return victims in total, per priority with the highest first, and gangs that lose a pod."""
    gangs = {gang["gang"]: gang for gang in case["running"]}
    pods = Counter[int]()
    for name, node in chosen:
        gang = gangs[name]
        pods[gang["priority"]] += sum(row["count"] for row in gang["pods"] if row["node"] == node)
    priorities = sorted(
        {gangs[name]["priority"] for name, _ in rules.evictable(case)}, reverse=True
    )
    return pods.total(), *(pods[row] for row in priorities), len({name for name, _ in chosen})


def _best_with(
    case: Case, gone: frozenset[tuple[str, str]], victims: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    """Return the best vector with these victims; the first allowed one in order of the vectors."""
    cluster = Cluster(case, gone)
    judge = Judge(case, cluster)
    scene = rules.Scene(case, set(gone))
    policy = case["request"].get("preemption", "")
    found: list[tuple[tuple[int, ...], int, Parts]] = []
    placements = list(islice(_placements(judge), MAX_PLACEMENTS + 1))
    if len(placements) > MAX_PLACEMENTS:
        raise TooLargeError
    for parts in placements:
        for strategy in _strategies(case, judge, parts):
            vector = (
                judge.vector(parts, strategy)
                if victims is None
                else judge.prefix(parts, strategy, victims, policy)
            )
            found.append((vector, len(found), parts))
    found.sort(key=lambda row: row[:2])
    return next(
        (row[0] for row in found if not list(rules.faults(scene, _assignment(judge, row[2])))),
        None,
    )


def _assignment(judge: Judge, parts: Parts) -> dict[str, list[str | None]]:
    rows: dict[str, list[str | None]] = {}
    for name, row in parts.items():
        placed = [node for part in row for node in part]
        rows[name] = [*placed, *[None] * (judge.by_name[name]["count"] - len(placed))]
    return rows


def _strategies(case: Case, judge: Judge, parts: Parts) -> list[int]:
    """Return the first strategy that holds; 0 if none is listed, none if none holds."""
    rows = case["request"].get("strategies")
    if not rows:
        return [0]
    cluster = judge.cluster
    pods = [node for row in parts.values() for part in row for node in part]
    job = cluster.common(pods + judge.own)
    inner = max(judge.part_tiers(parts, counts_slices=False), default=0)
    holding = [
        index
        for index, (high, low) in enumerate(rows)
        if job <= cluster.height(high) and inner <= cluster.height(low)
    ]
    return holding[:1]


def _placements(judge: Judge) -> Iterator[Parts]:
    """Yield all placements within capacity and selectors."""
    counts = [_counts(judge, group) for group in judge.groups]
    for chosen in product(*counts):
        if any(chosen):
            yield from _spread(judge, judge.groups, chosen, judge.cluster.free)


def _counts(judge: Judge, group: Case) -> list[int]:
    """Return how many pods of a group may be placed."""
    least = group.get("min", group["count"])
    below = any(
        group in leaf_groups(outer["children"])
        for outer in judge.request["groups"]
        if "children" in outer
    )
    step = group["slices"][-1]["size"] if group.get("slices") else 1
    counts = [n for n in range(max(least, 0), group["count"] + 1) if n % step == 0]
    return [0, *counts] if below and 0 not in counts else counts


def _spread(
    judge: Judge, groups: Sequence[Case], counts: Sequence[int], free: dict[str, Counter[str]]
) -> Iterator[dict[str, Any]]:
    if not groups:
        yield {}
        return
    group, count = groups[0], counts[0]
    size = group["slices"][-1]["size"] if group.get("slices") else max(count, 1)
    nodes = [node for node in judge.cluster.nodes if judge.slots(free, node, group)]
    slices = list(combinations_with_replacement(nodes, size))
    for parts in combinations_with_replacement(slices, count // size):
        pods = Counter(node for part in parts for node in part)
        if any(judge.slots(free, node, group) < many for node, many in pods.items()):
            continue
        left = free
        if pods:
            left = {node: Counter(row) for node, row in free.items()}
            for node in pods.elements():
                left[node].subtract(group["request"])
        for rest in _spread(judge, groups[1:], counts[1:], left):
            yield {group["name"]: list(parts), **rest}
