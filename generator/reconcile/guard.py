"""Whether a plan may be carried out, or is too large to believe without a person's word.

A cluster rarely changes much at once; evidence that is lost, cut short or renamed looks as if it
did. So a plan is held that takes more nodes out of their domains, or ends more domains of a tier,
than the budget says, and so is a first one from too few nodes. Pure: what is planned, what exists
and what is known come in, a verdict comes out; who approves what is the caller's.

Budgets are shares, and a share of a small cluster is less than one node. So the budget is never
smaller than two nodes, the number that one swapped pair of cables concerns, and one domain of a
tier; but it never reaches half of them by that alone, and a budget of 0 % stays 0.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from generator.objects.fabric import ChangeBudget
from generator.objects.pods import Gang
from generator.outputs.hypernode import HyperNode, render_manifest
from generator.reconcile.gang_splits import GangSplit, find_splits
from generator.reconcile.node_domains import NodeDomains, simulate_plan, find_node_domains
from generator.reconcile.plan import Action, Op
from topology.model.errors import show
from topology.model.ids import natural_key

QUORUM_PERCENT: Final = 50
"""Of the listed nodes must be known before anything is written for the first time. Later trees
carry over the names of those domains that keep most of their nodes: what most nodes say at first
is what stays."""
ALWAYS_ALLOWED_NODES: Final = 2
ALWAYS_ALLOWED_DOMAINS: Final = 1
_MAX_SHOWN: Final = 5
_HASH_DIGITS: Final = 16


class HoldKind(StrEnum):
    """Why a plan is held; as the reason of a condition."""

    TOO_MANY_NODES = "TooManyNodes"
    """More nodes than the budget would leave a domain that they are in."""
    TOO_MANY_DOMAINS = "TooManyDomains"
    """A tier would lose more of its domains than the budget."""
    NO_QUORUM = "NoQuorum"
    """Nothing exists yet, and too few of the listed nodes are known."""
    RUNNING_GANG = "RunningGang"
    """A domain would be split under a gang that runs in it."""


class HoldReason(NamedTuple):
    """One reason to hold a plan."""

    kind: HoldKind
    message: str
    """One line, foreign names escaped."""


class Coverage(NamedTuple):
    """How many of the nodes that should be known are."""

    num_listed: int = 0
    """0: nobody has listed the nodes, so none is missed."""
    num_known: int = 0
    """Of those: have a fresh report, or are seen by a sweep or a switch."""

    @property
    def is_quorate(self) -> bool:
        """Whether enough is known to begin with."""
        return self.num_known * 100 >= self.num_listed * QUORUM_PERCENT


@dataclass(frozen=True, slots=True)
class PlanVerdict:
    """What a plan would do, and why it is held; `allowed` where nothing holds it."""

    hash: str
    """Of the ordered writes, to approve them by; the same for the same writes."""
    hold_reasons: tuple[HoldReason, ...] = ()
    num_moved: int = 0
    """Nodes that would leave a domain that they are in."""
    counts: Mapping[Op, int] = field(default_factory=dict)
    """Actions of the plan by what they do."""

    @property
    def is_allowed(self) -> bool:
        """Whether it may be carried out unasked."""
        return not self.hold_reasons

    @property
    def reason_text(self) -> str:
        """Return the reasons as one line."""
        return "; ".join(hold.message for hold in self.hold_reasons)


def judge_plan(
    actions: Sequence[Action],
    observed: Iterable[HyperNode],
    *,
    budget: ChangeBudget,
    coverage: Coverage,
    gangs: Collection[Gang] = (),
) -> PlanVerdict:
    """Return whether a plan may be carried out unasked.

    What counts is the end of the plan, not its steps: a name that a HyperNode keeps on another
    tier is no loss, nor is padding. An empty plan is always allowed.
    Cost: O(nodes times tiers), as each node is looked up in each domain above it.
    """
    before = {found.name: found for found in observed if found.is_ours}
    after = simulate_plan(before, actions)
    homes, homes_after = find_node_domains(before), find_node_domains(after)
    moved = sorted(_find_moved(homes, homes_after), key=natural_key)
    holds: list[HoldReason] = []
    if actions and not before and not coverage.is_quorate:
        holds.append(_build_quorum_hold(coverage))
    if before:
        holds += _check_node_budget(moved, len(homes), budget)
        holds += _check_domain_budget(before, actions, budget)
        splits = find_splits(
            gangs, before=before, domains=homes, after=after, domains_after=homes_after
        )
        holds += _check_gang_splits(tuple(splits))
    counts = Counter(action.op for action in actions)
    return PlanVerdict(hash_plan(actions), tuple(holds), len(moved), counts)


def hash_plan(actions: Iterable[Action]) -> str:
    """Return 16 hex digits of what would be written and in which order, reasons left out."""
    digest = hashlib.sha256()
    for action in actions:
        wanted = None if action.object is None else render_manifest(action.object)
        row = [action.op.value, action.name, wanted]
        digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()[:_HASH_DIGITS]


def compute_allowance(num: int, percent: int, *, always_allowed: int) -> int:
    """Return how many of a number may go: the share, or the few that always may.

    Those few are less than half, and none where the share is 0 %.
    """
    few = min(always_allowed, (num - 1) // 2) if percent and num else 0
    return max(num * percent // 100, few)


def _find_moved(then: NodeDomains, now: NodeDomains) -> list[str]:
    return [node for node, domains in then.items() if not domains <= now.get(node, frozenset())]


def _build_quorum_hold(coverage: Coverage) -> HoldReason:
    return HoldReason(
        HoldKind.NO_QUORUM,
        f"{coverage.num_known} of {coverage.num_listed} listed nodes are known; the first "
        f"HyperNodes need {QUORUM_PERCENT} %",
    )


def _check_node_budget(
    moved: Sequence[str], num_nodes: int, budget: ChangeBudget
) -> Iterator[HoldReason]:
    allowed = compute_allowance(
        num_nodes, budget.nodes_percent, always_allowed=ALWAYS_ALLOWED_NODES
    )
    if len(moved) > allowed:
        yield HoldReason(
            HoldKind.TOO_MANY_NODES,
            f"{len(moved)} of {num_nodes} nodes would leave a domain, at most {allowed} may "
            f"({budget.nodes_percent} %): {_join_names(moved)}",
        )


def _check_domain_budget(
    before: Mapping[str, HyperNode], actions: Iterable[Action], budget: ChangeBudget
) -> Iterator[HoldReason]:
    doomed = {action.name for action in actions if action.op is Op.DELETE}
    tiers: dict[int, list[str]] = {}
    for found in before.values():
        if not found.is_padding:
            tiers.setdefault(found.tier, []).append(found.name)
    for tier in sorted(tiers):
        gone = sorted(doomed.intersection(tiers[tier]), key=natural_key)
        num = len(tiers[tier])
        allowed = compute_allowance(
            num, budget.domains_percent, always_allowed=ALWAYS_ALLOWED_DOMAINS
        )
        if len(gone) > allowed:
            yield HoldReason(
                HoldKind.TOO_MANY_DOMAINS,
                f"tier {tier} would lose {len(gone)} of {num} domains, at most {allowed} may "
                f"({budget.domains_percent} %): {_join_names(gone)}",
            )


def _check_gang_splits(splits: Sequence[GangSplit]) -> Iterator[HoldReason]:
    if splits:
        told = [f"{one.domain} under {one.gang} on {one.num_nodes} nodes of it" for one in splits]
        yield HoldReason(
            HoldKind.RUNNING_GANG,
            f"domains would be split under {len(splits)} running gangs: {_join_names(told)}",
        )


def _join_names(names: Sequence[str]) -> str:
    shown = ", ".join(map(show, names[:_MAX_SHOWN]))
    more = len(names) - _MAX_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
