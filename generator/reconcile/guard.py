"""Whether a plan may be written, or is held because it needs an approval. Pure.

A cluster rarely changes much at once, but lost, truncated or renamed data looks as if it did. So
a plan is held if it takes more nodes out of their domains, or deletes more domains of a tier,
than the budget allows. The first plan is held if too few nodes are known. Approvals are not
handled here: the caller knows them.

A gang was placed by the domains that existed then. While it runs, a domain that contains two or
more of its nodes is not split without an approval: pods of the gang that restart would be placed
by another tree than the rest of the gang. Two sweeps that disagree hold what would change the
domains of a node in question. A sweep that nobody confirms holds what takes a node out of a
domain: it may add nodes.

The changes that `decided_tree` remembers count with those of the plan. A plan that only writes
what was decided before is always allowed: it completes a plan, or undoes an edit by hand.

Budgets are percentages, and a percentage of a small cluster is less than one node. So two nodes
(one swapped pair of cables concerns two) and one domain of a tier are always allowed. These
minimums stay below half of the total, and a budget of 0 % stays 0.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from generator.ingest.inputs import DoubtKind, SweepDoubt
from generator.objects.fabric import ChangeBudget
from generator.objects.pods import Gang
from generator.objects.write_policy import compute_allowance
from generator.outputs.hypernode.model import render_manifest
from generator.reconcile.decided_tree import NodeDomains, TreeStep, find_node_domains
from generator.reconcile.hypernode_plan import Action, Op
from topology.model.errors import list_some, show
from topology.model.ids import natural_key, short_name

QUORUM_PERCENT: Final = 50
"""Share of the listed nodes that must be known before the first HyperNodes are written. Later
trees carry over the name of a domain that keeps most of its nodes, so the first names must come
from most of the nodes."""
ALWAYS_ALLOWED_NODES: Final = 2
ALWAYS_ALLOWED_DOMAINS: Final = 1
_UNLIMITED_PERCENT: Final = 100
"""A budget of 100 % holds nothing, although the changes of an hour may be more than all nodes."""
_MAX_SHOWN: Final = 5
_HASH_DIGITS: Final = 16
_NO_TIER: Final = 1 << 31
"""Above every tier."""
_NOWHERE: Final[frozenset[str]] = frozenset()


class HoldKind(StrEnum):
    """Why a plan is held: the reason of the condition ChangeBlocked."""

    TOO_MANY_NODES = "TooManyNodes"
    """More nodes would leave one of their domains than the budget allows."""
    TOO_MANY_DOMAINS = "TooManyDomains"
    """A tier would lose more of its domains than the budget allows."""
    NO_QUORUM = "NoQuorum"
    """No HyperNode exists yet, and too few of the listed nodes are known."""
    RUNNING_GANG = "RunningGang"
    """A domain would be split while a gang runs in it."""
    SWEEPS_DISAGREE = "SweepsDisagree"
    """Two sweepers see different cables of a node that would move."""
    SWEEP_CONTRADICTED = "SweepContradicted"
    """Hosts contradict the sweep that would move nodes."""
    SWEEP_UNCONFIRMED = "SweepUnconfirmed"
    """The first sweep of a new sweeper would move nodes, and no other sweep confirms it."""
    ADOPTION = "Adoption"
    """HyperNodes of others would be taken over; only `toponaut adopt` plans that."""


class HoldReason(NamedTuple):
    """One reason to hold a plan."""

    kind: HoldKind
    message: str
    """One line, foreign names escaped."""


class Coverage(NamedTuple):
    """How many of the listed nodes are known."""

    num_listed: int = 0
    """Nodes in the inventory; 0 without an inventory, and then no node is missed."""
    num_known: int = 0
    """Listed nodes that have a fresh report, or that a sweep or a switch sees."""

    @property
    def is_quorate(self) -> bool:
        """Whether enough nodes are known to write the first HyperNodes."""
        return self.num_known * 100 >= self.num_listed * QUORUM_PERCENT


@dataclass(frozen=True, slots=True)
class PlanVerdict:
    """The effect of a plan, and the reasons to hold it."""

    hash: str
    """Hash of the ordered writes; an approval names it. The same writes have the same hash."""
    hold_reasons: tuple[HoldReason, ...] = ()
    """Empty if the plan may be written."""
    moved: tuple[str, ...] = ()
    """Nodes that would leave one of their domains, in natural order."""
    deleted: tuple[tuple[int, str], ...] = ()
    """Domains that would be deleted, as (tier, name), sorted by both."""
    counts: Mapping[Op, int] = field(default_factory=dict)
    """Number of actions by operation."""

    @property
    def num_moved(self) -> int:
        """Number of nodes that would leave one of their domains."""
        return len(self.moved)

    @property
    def is_allowed(self) -> bool:
        """Whether the plan may be written without an approval."""
        return not self.hold_reasons

    @property
    def reason_text(self) -> str:
        """The reasons as one line."""
        return "; ".join(hold.message for hold in self.hold_reasons)


class PlanEvidence(NamedTuple):
    """The facts by which a plan is judged, besides its trees."""

    coverage: Coverage = Coverage()
    gangs: Collection[Gang] = ()
    """The running gangs."""
    doubts: Sequence[SweepDoubt] = ()
    """Doubts about the sweeps that the plan follows from."""
    holds: Sequence[HoldReason] = ()
    """Reasons to hold any plan, as for taking over objects of others."""


def judge_plan(
    actions: Sequence[Action], step: TreeStep, *, budget: ChangeBudget, evidence: PlanEvidence
) -> PlanVerdict:
    """Return the verdict on a plan: its effect, and the reasons to hold it.

    The tree after the whole plan counts, not its steps. A domain that keeps its name but moves to
    another tier is not a loss. What was decided before is always allowed.
    Cost: O(nodes times tiers), as each node is looked up in each domain above it.

    Args:
        actions: the plan.
        step: the step from the tree that was decided last to the desired tree.
        budget: how much may change without an approval.
        evidence: the other facts by which the plan is judged.
    """
    counts = Counter(action.op for action in actions)
    if step.is_restoration:
        return PlanVerdict(hash_plan(actions), tuple(evidence.holds), counts=counts)
    before, after = find_node_domains(step.last), find_node_domains(step.desired)
    moved = _find_moved(before, after)
    deleted = _find_deleted(step)
    holds = [*evidence.holds]
    if step.last.domains:
        holds += _check_node_budget(moved, step.recent.moved, len(before), budget)
        holds += _check_domain_budget(step, deleted, budget)
        holds += _check_gang_splits(find_splits(evidence.gangs, step, before, after))
    elif actions and not evidence.coverage.is_quorate:
        holds.append(_build_quorum_hold(evidence.coverage))
    holds += _check_doubts(evidence.doubts, before, after)
    return PlanVerdict(hash_plan(actions), tuple(holds), moved, deleted, counts)


def hash_plan(actions: Iterable[Action]) -> str:
    """Return 16 hex digits that identify the writes and their order; reasons do not count."""
    digest = hashlib.sha256()
    for action in actions:
        manifest = None if action.object is None else render_manifest(action.object)
        row = [action.op.value, action.name, manifest]
        digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()[:_HASH_DIGITS]


def _find_moved(before: NodeDomains, after: NodeDomains) -> tuple[str, ...]:
    """Return the nodes that are no longer in each domain above them, in natural order."""
    moved = (node for node, domains in before.items() if not domains <= after.get(node, _NOWHERE))
    return tuple(sorted(moved, key=natural_key))


def _find_deleted(step: TreeStep) -> tuple[tuple[int, str], ...]:
    kept = {domain.name for domain in step.desired.domains}
    return tuple(sorted((row.tier, row.name) for row in step.last.domains if row.name not in kept))


def _build_quorum_hold(coverage: Coverage) -> HoldReason:
    return HoldReason(
        HoldKind.NO_QUORUM,
        f"{coverage.num_known} of {coverage.num_listed} listed nodes are known; at least "
        f"{QUORUM_PERCENT} % must be known before the first HyperNodes are written",
    )


def _check_node_budget(
    moved: Sequence[str], recent: Collection[str], num_nodes: int, budget: ChangeBudget
) -> Iterator[HoldReason]:
    allowed = compute_allowance(
        num_nodes, budget.nodes_percent, always_allowed=ALWAYS_ALLOWED_NODES
    )
    num_earlier = len(set(recent).difference(moved))
    is_limited = bool(moved) and budget.nodes_percent < _UNLIMITED_PERCENT
    if is_limited and len(moved) + num_earlier > allowed:
        yield HoldReason(
            HoldKind.TOO_MANY_NODES,
            f"{len(moved)} of {num_nodes} nodes would leave a domain, at most {allowed} may "
            f"({budget.nodes_percent} %){_describe_earlier(num_earlier, 'left one', budget)}: "
            f"{list_some(map(show, moved), _MAX_SHOWN)}",
        )


def _check_domain_budget(
    step: TreeStep, deleted: Sequence[tuple[int, str]], budget: ChangeBudget
) -> Iterator[HoldReason]:
    sizes = Counter(domain.tier for domain in step.last.domains)
    for tier in sorted({tier for tier, _ in deleted}):
        names = sorted((name for on, name in deleted if on == tier), key=natural_key)
        num_earlier = sum(on == tier for on, _ in set(step.recent.deleted).difference(deleted))
        allowed = compute_allowance(
            sizes[tier], budget.domains_percent, always_allowed=ALWAYS_ALLOWED_DOMAINS
        )
        if len(names) + num_earlier > allowed and budget.domains_percent < _UNLIMITED_PERCENT:
            yield HoldReason(
                HoldKind.TOO_MANY_DOMAINS,
                f"tier {tier} would lose {len(names)} of {sizes[tier]} domains, at most {allowed} "
                f"may ({budget.domains_percent} %)"
                f"{_describe_earlier(num_earlier, 'were deleted', budget)}: "
                f"{list_some(map(show, names), _MAX_SHOWN)}",
            )


def _describe_earlier(num: int, what: str, budget: ChangeBudget) -> str:
    """Return a sentence about the used part of the budget; empty if nothing is used."""
    return f", and {num} {what} in the last {budget.window_seconds} s" if num else ""


class GangSplit(NamedTuple):
    """A domain whose nodes of one gang would no longer share a domain."""

    gang: str
    domain: str
    num_nodes: int
    """The number of nodes in the domain that the gang uses."""


def find_splits(
    gangs: Iterable[Gang], step: TreeStep, before: NodeDomains, after: NodeDomains
) -> list[GangSplit]:
    """Return the domains that a plan would split: per gang the lowest one, then the first by name.

    A domain is not split if the gang's nodes in it share it afterwards, or share another domain
    of the same tier or a lower one. Cost: O(nodes of gangs times tiers).
    """
    tiers_before = {domain.name: domain.tier for domain in step.last.domains}
    tiers_after = {domain.name: domain.tier for domain in step.desired.domains}
    splits = []
    for gang in sorted(gangs):
        shared: dict[str, list[str]] = {}
        for node in gang.nodes:
            for domain in before.get(node, ()):
                shared.setdefault(domain, []).append(node)
        for name in sorted(shared, key=lambda domain: (tiers_before[domain], natural_key(domain))):
            nodes = shared[name]
            common = frozenset.intersection(*(after.get(node, _NOWHERE) for node in nodes))
            tiers = [tiers_after[domain] for domain in common]
            is_whole = name in common or min(tiers, default=_NO_TIER) <= tiers_before[name]
            if len(nodes) > 1 and not is_whole:
                splits.append(GangSplit(gang.name, name, len(nodes)))
                break
    return splits


def _check_gang_splits(splits: Sequence[GangSplit]) -> Iterator[HoldReason]:
    if splits:
        shown = [
            f"{split.domain} ({split.gang} runs on {split.num_nodes} of its nodes)"
            for split in splits
        ]
        yield HoldReason(
            HoldKind.RUNNING_GANG,
            f"domains would be split under {len(splits)} running gangs: "
            f"{list_some(map(show, shown), _MAX_SHOWN)}",
        )


def _check_doubts(
    doubts: Sequence[SweepDoubt], before: NodeDomains, after: NodeDomains
) -> Iterator[HoldReason]:
    """Yield a reason to hold the plan for each doubt about a sweep that it depends on."""
    if not doubts:
        return
    changed = [node for node in before.keys() | after.keys() if before.get(node) != after.get(node)]
    for doubt in doubts:
        nodes = _select_doubtful(doubt, changed, before, after)
        if nodes:
            shown = list_some(map(show, sorted(nodes, key=natural_key)), _MAX_SHOWN)
            message = f"{doubt.message}; the plan would move {shown}"
            yield HoldReason(HoldKind(doubt.kind.value), message)


def _select_doubtful(
    doubt: SweepDoubt, changed: Sequence[str], before: NodeDomains, after: NodeDomains
) -> Sequence[str]:
    """Return the nodes of a plan that a doubt is about."""
    if doubt.kind is DoubtKind.SWEEP_UNCONFIRMED:
        return [
            node for node in changed if not before.get(node, _NOWHERE) <= after.get(node, _NOWHERE)
        ]
    if doubt.nodes is None:
        return changed
    names = {short_name(node) for node in doubt.nodes}
    return [node for node in changed if short_name(node) in names]
