"""The whole objective vector of the preset `optimal`, measured from the key definitions alone.

Nothing of the engine is used: a cluster is names and paths, and a placement is nodes per pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import Any

from tests.vectors.hard_rules import rules

Parts = Mapping[str, Sequence[Sequence[str]]]
"""Per leaf group the nodes of every part: a slice, or the whole group."""
Case = Mapping[str, Any]
Unit = tuple[str, ...]


def leaf_groups(groups: Sequence[Case]) -> list[Case]:
    """Return the groups of pods in a tree of groups, in order."""
    return [
        leaf
        for group in groups
        for leaf in (leaf_groups(group["children"]) if "children" in group else [group])
    ]


class Cluster:
    """The nodes of a case and the domains around them."""

    def __init__(self, case: Case, gone: frozenset[tuple[str, str]] = frozenset()) -> None:
        """Read a case; `gone` are (gang, node) of the pods that are evicted."""
        self.tiers = ["node", *case["tree"]["tiers"], "cluster"]
        self.root = len(self.tiers) - 1
        self.units: dict[str, list[Unit]] = {}
        self._read(case["tree"]["root"], ())
        # In the order of names from the top; all numbers have one digit.
        self.nodes = sorted(self.units, key=lambda node: self.units[node][0])
        self.specs = case["nodes"]
        self.closed = rules.closed_nodes(rules.Scene(case))
        self.free = {node: Counter(self.specs[node]["capacity"]) for node in self.nodes}
        self.own: list[tuple[str, str]] = []
        for gang in case.get("running", ()):
            for pods in gang["pods"]:
                if (gang["gang"], pods["node"]) in gone:
                    continue
                for _ in range(pods["count"]):
                    self.free[pods["node"]].subtract(pods["request"])
                    if gang["gang"] == "self":
                        self.own.append((pods["group"], pods["node"]))

    def _read(self, branch: Case | list[str], path: Unit) -> None:
        if isinstance(branch, list):
            for node in branch:
                outer = [path[:length] for length in range(len(path), -1, -1)]
                self.units[node] = [(*path, node), *outer]
            return
        for name, below in branch.items():
            self._read(below, (*path, name))

    def height(self, tier: str) -> int:
        """Return the index of a tier, nodes first."""
        return self.tiers.index(tier)

    def common(self, nodes: Sequence[str]) -> int:
        """Return the lowest tier of which one unit holds all nodes; 0 for none."""
        if not nodes:
            return 0
        first = self.units[nodes[0]]
        return next(
            tier
            for tier in range(self.root + 1)
            if all(self.units[node][tier] == first[tier] for node in nodes)
        )


class Judge:
    """Measures the placements of one case."""

    def __init__(self, case: Case, cluster: Cluster) -> None:
        """Find the slots of the scarcest pod."""
        self.case, self.cluster, self.request = case, cluster, case["request"]
        self.groups = leaf_groups(self.request["groups"])
        self.by_name = {group["name"]: group for group in self.groups}
        self.own = [node for _, node in cluster.own]

    def slots(self, free: Mapping[str, Counter[str]], node: str, group: Case) -> int:
        """Return the pods of a group that fit a node."""
        if node in self.cluster.closed:
            return 0
        labels = self.cluster.specs[node]["labels"]
        selector = group.get("node_selector", {})
        if any(labels.get(key) != value for key, value in selector.items()):
            return 0
        fits = min(free[node][name] // need for name, need in group["request"].items())
        return max(0, int(fits))

    @cached_property
    def scarcest(self) -> list[Case]:
        """Groups of which the cluster holds the fewest pods; more than one if kinds tie."""
        totals = [
            sum(self.slots(self.cluster.free, node, group) for node in self.cluster.nodes)
            for group in self.groups
        ]
        rows = [
            group for group, total in zip(self.groups, totals, strict=True) if total == min(totals)
        ]
        kinds = {str((row["request"], row.get("node_selector"))): row for row in rows}
        return list(kinds.values())

    def vector(self, parts: Parts, strategy: int) -> tuple[int, ...]:
        """Return all keys in the order of `optimal`; smaller is better."""
        cluster, root = self.cluster, self.cluster.root
        rows = {name: [n for part in row for n in part] for name, row in parts.items()}
        pods = [node for row in rows.values() for node in row]
        job = cluster.common(pods + self.own)
        tiers = list(self.part_tiers(parts))
        used = [{cluster.units[node][tier] for node in pods} for tier in range(root)]
        beside = [{cluster.units[node][tier] for node in self.own} for tier in range(root)]
        down = range(root - 1, -1, -1)
        return (
            -len(pods),
            strategy,
            *(-sum(cluster.units[node][tier] in beside[tier] for node in pods) for tier in down),
            job,
            max(tiers, default=0),
            *(tiers.count(tier) for tier in range(root, -1, -1)),
            self._preferred_misses(parts, rows, job),
            self._node_misses(rows),
            *(len(used[tier]) for tier in down),
            *self._sort(pods[0], job),
            *self._free_slots(rows, pods[0], job, used),
            self._traffic(rows),
            self._name_rank(pods[0], job),
        )

    def prefix(
        self, parts: Parts, strategy: int, victims: Sequence[int], policy: str
    ) -> tuple[int, ...]:
        """Return the keys up to the domains used, with those of the victims if they come first.

        The keys below depend on what else could be evicted.
        """
        root = self.cluster.root
        whole = self.vector(parts, strategy)
        upper = 2 + root + 2 + (root + 1) + 2 + root
        if policy == "fewestVictims":
            return (whole[0], *victims, *whole[1:upper])
        return whole[:upper]

    def part_tiers(self, parts: Parts, *, counts_slices: bool = True) -> Iterator[int]:
        """Yield the tier of every part with a new pod, beside the running pods of its group.

        A slice counts at least as the tier that it must share, unless that is left out.
        """
        for name, row in parts.items():
            layers = self.by_name[name].get("slices", ())
            floor = self.cluster.height(layers[-1]["tier"]) if layers and counts_slices else 0
            for part in row:
                if part:
                    yield max(self.cluster.common([*part, *self._own_of(name)]), floor)

    def _own_of(self, name: str) -> list[str]:
        return [node for group, node in self.cluster.own if group == name]

    def _preferred_misses(self, parts: Parts, rows: Mapping[str, list[str]], job: int) -> int:
        height, common = self.cluster.height, self.cluster.common
        preferred = list(self.request.get("preferred", ()))
        if len(self.groups) == 1:
            preferred += self.groups[0].get("preferred", ())
        missed = sum(job > height(tier) for tier in preferred)
        if len(self.groups) > 1:
            missed += sum(
                common([*part, *self._own_of(name)]) > height(tier)
                for name, row in parts.items()
                for part in row
                if part
                for tier in self.by_name[name].get("preferred", ())
            )
        for group in self.request["groups"]:
            if "children" not in group:
                continue
            names = [leaf["name"] for leaf in leaf_groups([group])]
            placed = [node for name in names for node in rows[name]]
            held = placed + [node for name, node in self.cluster.own if name in names]
            tiers = group.get("preferred", ()) if placed else ()
            missed += sum(common(held) > height(tier) for tier in tiers)
        return missed

    def _node_misses(self, rows: Mapping[str, list[str]]) -> int:
        return sum(
            self.cluster.specs[node]["labels"].get(key) != value
            for name, row in rows.items()
            for node in row
            for key, value in self.by_name[name].get("node_preference", {}).items()
        )

    def _sort(self, first: str, job: int) -> Iterator[int]:
        unit = self.cluster.units[first][job]
        inside = [node for node in self.cluster.nodes if self.cluster.units[node][job] == unit]
        for rule in self.request.get("sort", ()):
            source = (
                {node: self.cluster.specs[node]["capacity"] for node in inside}
                if rule["dimension"] == "Capacity"
                else self.cluster.free
            )
            total = sum(source[node].get(rule["resource"], 0) for node in inside)
            yield -total if rule["order"] == "Descending" else total

    def _free_slots(
        self, rows: Mapping[str, list[str]], first: str, job: int, used: Sequence[set[Unit]]
    ) -> Iterator[int]:
        """Yield the slots left in the job's domain, in those around it, and in all used ones."""
        units, root = self.cluster.units, self.cluster.root
        free = {node: Counter(row) for node, row in self.cluster.free.items()}
        for name, row in rows.items():
            for node in row:
                free[node].subtract(self.by_name[name]["request"])
        left = {node: self.slots(free, node, self.scarcest[0]) for node in units}
        for tier in (job, *range(job + 1, root)):
            unit = units[first][tier]
            yield sum(count for node, count in left.items() if units[node][tier] == unit)
        for tier in range(root):
            yield sum(count for node, count in left.items() if units[node][tier] in used[tier])

    def _traffic(self, rows: Mapping[str, list[str]]) -> int:
        total = 0
        triples = [*self.request.get("traffic", ())]
        for kind, weight in (("attract", 1), ("repel", -1)):
            for names in self.request.get("affinity", {}).get(kind, ()):
                pods = combinations(names, 2) if len(names) > 1 else [names * 2]
                triples += [(first, second, weight) for first, second in pods]
        for first, second, weight in triples:
            pairs = (
                combinations(rows[first], 2)
                if first == second
                else product(rows[first], rows[second])
            )
            total += weight * sum(self.cluster.common(pair) for pair in pairs)
        return total

    def _name_rank(self, first: str, job: int) -> int:
        order = dict.fromkeys(self.cluster.units[node][job] for node in self.cluster.nodes)
        return list(order).index(self.cluster.units[first][job])
