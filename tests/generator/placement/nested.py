"""Random small jobs with less common features, and a judge that tries every placement of them.

Nested groups, leaders, traffic, affinity, preferred labels, sort rules and eviction: each job is
drawn as a document, and judged from that document alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from hypothesis import strategies as st

from generator.placement.cluster.nodes import NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from tests.generator.placement.referee import Unit
from tests.generator.placement.scenes import TIERS, Paths, paths, tree_of
from topology.model.tree import API_VERSION

Assignment = dict[str, tuple[str, ...]]
"""Per leaf group the nodes of its placed pods, sorted."""

Running = Mapping[str, tuple[int, tuple[str, ...], int]]
"""Gang -> (priority, node of each of its pods, fewest pods that it keeps if it keeps any)."""


@dataclass(frozen=True)
class Job:
    """A cluster, and the spec of a request."""

    paths: Paths
    slots: dict[str, int]
    """Slots per node in total, including those of victims."""
    zones: dict[str, str]
    running: Running
    spec: dict[str, Any]

    @property
    def depth(self) -> int:
        return len(next(iter(self.paths.values())))

    @property
    def tiers(self) -> tuple[str, ...]:
        return ("node", *TIERS[: self.depth], "cluster")

    def unit(self, node: str, tier: int) -> Unit:
        path = self.paths[node]
        if tier > self.depth:
            return ()
        known = [lower for lower in range(tier) if path[lower] is not None]
        return (known[-1], *path[known[-1] :]) if known else (node,)

    def common(self, nodes: Sequence[str]) -> int:
        heights = range(self.depth + 2)
        return next(t for t in heights if len({self.unit(node, t) for node in nodes}) == 1)

    def snapshot(self) -> Snapshot:
        """Return the snapshot of the cluster."""
        nodes = {
            node: NodeSpec(node, {"slots": count}, labels={"zone": self.zones[node]})
            for node, count in self.slots.items()
        }
        gangs = [
            RunningGang(name, tuple(RunningPods(node) for node in on), priority, min_pods=least)
            for name, (priority, on, least) in self.running.items()
        ]
        return build_snapshot(tree_of(self.paths, TIERS[: self.depth]), nodes, gangs)

    def document(self) -> dict[str, Any]:
        """Return the request document."""
        return {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": self.spec}


@st.composite
def jobs(draw: st.DrawFn, *, most_nodes: int = 5) -> Job:
    """Draw a job with one of the less common features."""
    found = draw(paths(most_nodes=most_nodes))
    depth = len(next(iter(found.values())))
    names = ("node", *TIERS[:depth], "cluster")
    tier = st.sampled_from([None, None, *names[1:-1]])
    spec: dict[str, Any] = {"across_islands": draw(st.booleans()), "groups": draw(_groups(tier))}
    leaves = [row["name"] for row in leaf_rows(spec["groups"])]
    spec |= draw(st.sampled_from([{}, {"required": names[-2]}, {"preferred": [names[1]]}]))
    if draw(st.booleans()):
        pair = st.tuples(st.sampled_from(leaves), st.sampled_from(leaves), st.integers(1, 3))
        spec["traffic"] = draw(st.lists(pair, min_size=1, max_size=2))
    elif draw(st.booleans()):
        spec["affinity"] = {draw(st.sampled_from(["attract", "repel"])): [leaves[:2]]}
    running = {}
    if draw(st.integers(0, 2)) == 0:
        spec |= {"priority": 5, "preemption": draw(st.sampled_from(POLICIES))}
        for name in ("a", "b", "c")[: draw(st.integers(1, 3))]:
            on = draw(st.lists(st.sampled_from(sorted(found)), min_size=1, max_size=3))
            least = draw(st.integers(0, len(on)))
            running[name] = (draw(st.sampled_from([1, 2, 9])), tuple(on), least)
    held = Counter(node for _, on, _ in running.values() for node in on)
    return Job(
        paths=found,
        slots={node: draw(st.integers(0, 2)) + held[node] for node in found},
        zones={node: draw(st.sampled_from("ab")) for node in found},
        running=running,
        spec=spec,
    )


POLICIES = ("topologyFirst", "fewestVictims")


@st.composite
def _groups(draw: st.DrawFn, tier: st.SearchStrategy[str | None]) -> list[dict[str, Any]]:
    """Draw a parent with two or three members, a leader with workers, or two plain groups."""
    kind = draw(st.sampled_from(["parent", "leader", "plain"]))
    sizes = [draw(st.integers(1, 2)) for _ in range(2)]
    leaves = [draw(_leaf(f"g{index}", size, tier)) for index, size in enumerate(sizes)]
    if kind == "parent":
        parent: dict[str, Any] = {"name": "p", "children": leaves}
        bound = draw(tier)
        parent |= {} if bound is None else {"required": bound}
        parent |= {"min": 1} if draw(st.booleans()) else {}
        return [parent, {"name": "g2", "count": 1}]
    if kind == "leader":
        leaves[0] |= {"count": 1, "leader_of": "g1"}
    return leaves


@st.composite
def _leaf(
    draw: st.DrawFn, name: str, count: int, tier: st.SearchStrategy[str | None]
) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "count": count}
    bound = draw(tier)
    if bound is not None:
        row["required"] = bound
    if draw(st.integers(0, 3)) == 0:
        row["node_preference"] = {"zone": "a"}
    return row


def leaf_rows(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the groups of pods in a tree of groups, in order."""
    return [
        leaf
        for row in rows
        for leaf in (leaf_rows(row["children"]) if "children" in row else [row])
    ]


def best(job: Job) -> tuple[int, ...] | None:
    """Return the best (pods, [victims], tier, parts, …) over all placements, or None.

    A prefix of the optimal order is compared, by key names: pods placed; with `fewestVictims`, the
    evicted pods in total and per priority; job tier, group tier, histogram, preferred misses,
    missed preferred labels, domains per tier.
    """
    calm = [_vector(job, rows, ()) for rows in _assignments(job, job.running) if _holds(job, rows)]
    if calm or "preemption" not in job.spec:
        return min(calm, default=None)
    vectors = []
    for gone in _victims(job):
        left = {
            name: (priority, tuple(node for node in on if (name, node) not in gone), least)
            for name, (priority, on, least) in job.running.items()
        }
        if any(0 < len(on) < least for _, on, least in left.values()):
            continue
        rows = (row for row in _assignments(job, left) if _holds(job, row))
        vectors += [_vector(job, row, gone) for row in rows]
    return min(vectors, default=None)


def priorities(job: Job) -> list[int]:
    """Return the priorities of all gangs that may be evicted, the highest first."""
    return sorted(
        {priority for priority, _, _ in job.running.values() if priority < 5}, reverse=True
    )


def _victims(job: Job) -> Iterator[tuple[tuple[str, str], ...]]:
    """Yield all sets of (gang, node) that may be evicted."""
    pairs = sorted(
        {(name, node) for name, (p, on, _) in job.running.items() if p < 5 for node in on}
    )
    for many in range(len(pairs) + 1):
        yield from combinations(pairs, many)


def _assignments(job: Job, running: Running) -> Iterator[Assignment]:
    """Yield all placements within capacity and minimums."""
    held = Counter(node for _, on, _ in running.values() for node in on)
    free = {node: count - held[node] for node, count in job.slots.items()}
    leaves = leaf_rows(job.spec["groups"])
    options = [_counts(job, row) for row in leaves]
    for counts in product(*options):
        placed = {row["name"] for row, n in zip(leaves, counts, strict=True) if n}
        if placed and all(_is_complete(row, placed) for row in job.spec["groups"]):
            yield from _spread(leaves, counts, free)


def _counts(job: Job, leaf: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the allowed numbers of pods of a group; groups below a parent may be left out."""
    is_inner = any("children" in row and leaf in row["children"] for row in job.spec["groups"])
    return (0, leaf["count"]) if is_inner else (leaf["count"],)


def _is_complete(row: Mapping[str, Any], placed: set[str]) -> bool:
    if "children" not in row:
        return row["name"] in placed
    done = sum(_is_complete(child, placed) for child in row["children"])
    return bool(done >= row.get("min", len(row["children"])))


def _spread(
    leaves: Sequence[Mapping[str, Any]], counts: Sequence[int], free: Mapping[str, int]
) -> Iterator[Assignment]:
    if not leaves:
        yield {}
        return
    nodes = [node for node, count in free.items() for _ in range(min(count, counts[0]))]
    for chosen in sorted(set(combinations(sorted(nodes), counts[0]))):
        left = {node: count - chosen.count(node) for node, count in free.items()}
        for rest in _spread(leaves[1:], counts[1:], left):
            yield {leaves[0]["name"]: chosen, **rest}


def _holds(job: Job, rows: Assignment) -> bool:
    """Return whether the placement satisfies required tiers and islands."""
    height = job.tiers.index
    everything = [node for row in rows.values() for node in row]
    cap = height(job.spec.get("required", "cluster"))
    is_one = job.spec["across_islands"] or job.common(everything) < len(job.tiers) - 1
    scopes = [(everything, cap)]
    for row in job.spec["groups"]:
        scopes += _bounds(job, row, rows)
    return is_one and all(job.common(held) <= most for held, most in scopes if held)


def _bounds(job: Job, row: Mapping[str, Any], rows: Assignment) -> list[tuple[list[str], int]]:
    """Return (nodes, highest tier) of a group and of the groups inside it."""
    names = [leaf["name"] for leaf in leaf_rows([row])]
    found = []
    if "required" in row:
        cap = job.tiers.index(row["required"])
        found.append(([node for name in names for node in rows[name]], cap))
        if "leader_of" in row:
            found.append(([*rows[row["name"]], *rows[row["leader_of"]]], cap))
    for child in row.get("children", ()):
        found += _bounds(job, child, rows)
    return found


def _vector(job: Job, rows: Assignment, gone: tuple[tuple[str, str], ...]) -> tuple[int, ...]:
    everything = [node for row in rows.values() for node in row]
    parts = [job.common(row) for row in rows.values() if row]
    heights = range(len(job.tiers) - 1, -1, -1)
    victims = Counter[int]()
    for gang, node in gone:
        priority, on, _ = job.running[gang]
        victims[priority] += on.count(node)
    is_fewest = job.spec.get("preemption") == "fewestVictims"
    tier = job.common(everything)
    preferred = [job.tiers.index(name) for name in job.spec.get("preferred", ())]
    leaves = {row["name"]: row for row in leaf_rows(job.spec["groups"])}
    missed = sum(
        job.zones[node] != "a"
        for name, row in rows.items()
        if "node_preference" in leaves[name]
        for node in row
    )
    return (
        -len(everything),
        *([victims.total(), *(victims[row] for row in priorities(job))] if is_fewest else []),
        tier,
        max(parts),
        *(parts.count(height) for height in heights),
        sum(tier > wanted for wanted in preferred),
        missed,
        *(
            len({job.unit(node, height) for node in everything})
            for height in heights
            if height < len(job.tiers) - 1
        ),
    )


def traffic(job: Job, rows: Assignment) -> int:
    """Return weight × tier over all pairs of pods that communicate."""
    triples = list(job.spec.get("traffic", ()))
    roles = job.spec.get("affinity", {})
    for weight, sets in ((1, roles.get("attract", ())), (-1, roles.get("repel", ()))):
        for names in sets:
            pairs = combinations(names, 2) if len(names) > 1 else [(names[0], names[0])]
            triples += [(first, second, weight) for first, second in pairs]
    total = 0
    for first, second, weight in triples:
        pairs_of = (
            combinations(rows[first], 2) if first == second else product(rows[first], rows[second])
        )
        total += weight * sum(job.common(pair) for pair in pairs_of)
    return total
