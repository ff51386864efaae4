"""Plans that are written one after the other, each by a new process, and cut off at any write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from generator.objects.fabric import ChangeBudget
from generator.objects.tree_record import (
    TreeRecord,
    parse_tree_record,
    render_tree_record,
    strip_tree,
)
from generator.objects.write_policy import WritePolicy
from generator.outputs.hypernode.forest import render_hypernodes
from generator.outputs.hypernode.model import HyperNode
from generator.reconcile.decided_tree import find_last_tree
from generator.reconcile.decision import RoundState, decide
from generator.reconcile.desired import PlannedChanges
from generator.reconcile.hypernode_plan import plan_changes
from generator.reconcile.writer import carry_out
from tests.generator.reconcile.cluster import FakeCluster
from topology.inference.domain_names import UnnamedDomain, assign_names
from topology.model.errors import StoreError
from topology.model.tree import DomainSpec, TopologyTree, build_tree

NOON: Final = datetime(2026, 7, 1, 12, tzinfo=UTC)
ANYTHING: Final = WritePolicy(ChangeBudget(nodes_percent=100, domains_percent=100))


class Cabling(NamedTuple):
    """A fabric: the leaf of each node, and the spine of each leaf."""

    leaves: tuple[int, ...]
    """By node; a node at leaf 0 is in no domain."""
    spines: tuple[int, ...]
    """By leaf."""

    def name(self, previous: TopologyTree | None) -> TopologyTree:
        """Return the tree with its names."""
        nodes: dict[int, set[str]] = {}
        for number, leaf in enumerate(self.leaves):
            if leaf:
                nodes.setdefault(leaf, set()).add(f"n{number}")
        above: dict[int, set[str]] = {}
        for leaf, below in nodes.items():
            above.setdefault(self.spines[leaf], set()).update(below)
        unnamed = [
            UnnamedDomain(tier, name, frozenset(group), (f"{name}-{number}",), f"{name}{number}")
            for tier, name, groups in ((1, "leaf", nodes), (2, "spine", above))
            for number, group in sorted(groups.items())
        ]
        names = assign_names(unnamed, previous)
        leaf_names = dict(zip(sorted(nodes), names, strict=False))
        spine_names = dict(zip(sorted(above), names[len(nodes) :], strict=True))
        specs = [
            DomainSpec(leaf_names[leaf], 1, spine_names[self.spines[leaf]], tuple(sorted(group)))
            for leaf, group in nodes.items()
        ]
        specs += [DomainSpec(name, 2, None) for name in spine_names.values()]
        return build_tree(specs, tiers=("leaf", "spine"))


class Step(NamedTuple):
    """One apply."""

    cabling: Cabling
    num_writes: int | None = None
    """The writes after which the process is killed; None: it ends by itself."""


@dataclass
class FusedStore:
    """A store of HyperNodes and the record that fails after some writes."""

    cluster: FakeCluster = field(default_factory=FakeCluster)
    record: Mapping[str, object] | None = None
    num_left: int | None = None

    @contextmanager
    def fused(self, num_writes: int | None) -> Iterator[None]:
        self.num_left = num_writes
        yield
        self.num_left = None

    @property
    def decided(self) -> TopologyTree | None:
        """The tree that was decided last."""
        return parse_tree_record(self.record).tree

    def put(self, hypernode: HyperNode, taken: HyperNode | None = None) -> bool:
        self._count()
        done = self.cluster.put(hypernode, taken)
        self.check()
        return done

    def remove(self, name: str) -> bool:
        self._count()
        done = self.cluster.remove(name)
        self.check()
        return done

    def consume_approval(self, plan: str) -> bool:
        raise AssertionError(f"nobody approved {plan}")

    def write_record(self, record: TreeRecord) -> bool:
        self._count()
        self.record = render_tree_record(record)
        return True

    def check(self) -> None:
        """Check the laws of every state."""
        assert not self.cluster.shared()
        assert not self.cluster.dangling()
        assert not self.cluster.doubled()

    def _count(self) -> None:
        if self.num_left is not None:
            if not self.num_left:
                raise StoreError("killed")
            self.num_left -= 1


def apply_once(store: FusedStore, step: Step) -> None:
    """Apply one step in a new process."""
    record = parse_tree_record(store.record) if store.record is not None else None
    observed = tuple(store.cluster.state.values())
    existing = find_last_tree(record, observed)
    desired = strip_tree(step.cabling.name(existing))
    actions = plan_changes(render_hypernodes(desired), observed)
    planned = PlannedChanges(actions, (), desired)
    decision = decide(RoundState(planned, NOON, observed, record, existing, ANYTHING))
    with store.fused(step.num_writes):
        carry_out(decision, store)


def apply_all(steps: Sequence[Step]) -> FusedStore:
    """Apply steps one after the other."""
    store = FusedStore()
    for step in steps:
        apply_once(store, step)
    return store


def check_ends_alike(steps: Sequence[Step]) -> None:
    """Check that the last step ends as if no step had been cut off.

    A step that is killed before its first write was not made.
    """
    last = steps[-1]._replace(num_writes=None)
    cut = apply_all([*steps, last])
    whole = apply_all(
        [*(step._replace(num_writes=None) for step in steps if step.num_writes != 0), last]
    )
    assert cut.cluster.state == whole.cluster.state
    # What the budget remembers may differ: a node that was never moved was not moved back.
    assert cut.decided == whole.decided
