"""The presets: what each system prefers, as data.

`order` is the one objective vector in the system's order; what a key measures is said in
`objective`. Systems whose choice no vector describes have a `walk` as well: the order in which
domains are tried and filled, which `walking` follows. Where a walk finds nothing although the
request fits, the exact search answers in the order: no system's blind spot is copied.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple


class Preset(StrEnum):
    """Whose order of preferences is followed."""

    KOORDINATOR = "koordinator"
    VOLCANO = "volcano"
    KUEUE = "kueue"
    KUEUE_BALANCED = "kueue-balanced"
    KAI = "kai"
    GODEL = "godel"
    TASK_TOPOLOGY = "task-topology"
    SLURM_TREE = "slurm-tree"
    SLURM_BLOCK = "slurm-block"
    OPTIMAL = "optimal"


class ObjectiveKey(StrEnum):
    """Keys of the objective vector; tiers of a key with several are ordered as said here."""

    PLACED = "placed"
    """Pods placed."""
    STRATEGY = "strategy"
    """Index of the first listed strategy that holds; 0 where none is listed."""
    NODE_WEIGHTS = "node_weights"
    """Pods per weight that the request gives nodes, the heaviest first; others weigh 0."""
    EXISTING = "existing"
    """Per tier, coarsest first: pods placed in a domain where the gang runs already."""
    JOB_TIER = "job_tier"
    """Tier of the lowest domain that holds the whole job, running pods included."""
    GROUP_TIER = "group_tier"
    """Highest tier over the parts; a part is a group, or a slice of one."""
    HISTOGRAM = "histogram"
    """Per tier, coarsest first: parts whose own tier it is."""
    PREFERRED_MISSES = "preferred_misses"
    """Preferred tiers that are not kept, counted over the job and its groups."""
    NODE_MISSES = "node_misses"
    """Wished labels that nodes lack, counted over pods."""
    ISLANDS = "islands"
    """Where islands are to be spared: top domains that a job uses, and their slots.

    0, 0 of a job that lies below them.
    """
    DOMAINS = "domains"
    """Per tier, coarsest first: domains used."""
    SORT = "sort"
    """The user's rules on the domain of the job, one value each; descending ones negated."""
    SURPLUS = "surplus"
    """Slots of the largest pod left in the domain of the job."""
    PARENT_SURPLUS = "surplus_parents"
    """The same of its parents, nearest first."""
    FRAGMENTATION = "fragmentation"
    """Per tier, finest first: slots of the largest pod left in the domains used."""
    TRAFFIC = "traffic"
    """Weight × tier over pairs of pods that talk; affinity weighs 1, anti-affinity -1."""
    VICTIM_PRIORITIES = "victim_priorities"
    """Pods evicted per priority, the highest one first; only where something is evicted."""
    VICTIM_GANGS = "victim_gangs"
    """Gangs that lose a pod."""
    VICTIM_PODS = "victim_pods"
    """Pods evicted."""
    NAMES = "names"
    """Position of the job's domain in natural order of names."""


class Direction(StrEnum):
    """What is better."""

    LESS = "less"
    MORE = "more"


class ObjectiveTerm(NamedTuple):
    """One key of a preset and its direction."""

    key: ObjectiveKey
    direction: Direction = Direction.LESS


class CandidateTiers(StrEnum):
    """Tiers whose domains are tried, from the finest on, up to the highest that is allowed."""

    LOWEST = "lowest"
    """All; the domains of the first tier where any fits."""
    LOWEST_FROM_LEAVES = "leaves"
    """The same from tier 1 on."""
    FROM_PREFERRED = "asked"
    """From the finest preferred one; only the required one where none is preferred."""
    NAMED_ONLY = "keys"
    """Only those that are named, and the cluster where none is required."""


class SortKey(StrEnum):
    """What domains are sorted by."""

    RUNNING = "running"
    """More pods of the gang run there."""
    PREFERRED_LABELS = "wished"
    """More room on nodes that carry the wished labels."""
    TIGHT = "tight"
    """Less room."""
    TIGHT_FOR_GANG = "tight-for-gang"
    """Less room, what is beyond the gang's size not counted."""
    ROOMY = "roomy"
    """More room."""
    USER_RULES = "rules"
    """The user's sort rules; without any, less CPU in all."""
    NAME_TEXT = "text"
    """Names from the top down, compared as text."""
    TREE_ORDER = "first"
    """Tree order, which is natural order."""
    REVERSE_TREE_ORDER = "last"
    """The reverse of it."""


class AncestorOrder(StrEnum):
    """Whether domains are compared by the domains above them too."""

    NONE = "no"
    OWN_FIRST = "after"
    """By their own value, then by those above, nearest first."""
    ANCESTORS_FIRST = "before"
    """By those above, the top one first, then by their own."""


class DomainSort(NamedTuple):
    """One rule by which domains are sorted."""

    key: SortKey
    ancestors: AncestorOrder = AncestorOrder.NONE


class FlatFill(StrEnum):
    """Below which tier nodes are filled one by one, whatever lies between."""

    NOWHERE = "nowhere"
    LEAVES = "leaves"
    """Tier 1."""
    FINEST_NAMED = "asked"
    """The finest tier that is named."""


@dataclass(frozen=True, slots=True)
class PlacementWalk:
    """How a system tries domains and fills the one that it takes."""

    candidate_tiers: CandidateTiers
    domain_order: tuple[DomainSort, ...]
    """In which order the domains of a tier are tried."""
    fill_order: tuple[DomainSort, ...]
    """In which order the domains inside it are filled."""
    node_order: tuple[DomainSort, ...] = ()
    """The same for nodes that are filled flat."""
    flat_fill: FlatFill = FlatFill.NOWHERE
    best_fit_order: tuple[DomainSort, ...] = ()
    """Order among domains that hold all that is left; none: such a domain is nothing special."""
    untiered_node_order: tuple[DomainSort, ...] = ()
    """Order of nodes for a group that names no tier; none: it is filled as others are."""
    is_slice_by_slice: bool = False
    """Whether each slice is placed by itself, rather than as many as a domain holds."""
    starts_with_minimum: bool = False
    """Whether the domain is chosen for the fewest pods that will do."""
    may_leave_domain: bool = False
    """Whether further pods may leave that domain."""
    checks_total_capacity: bool = False
    """Whether a domain is tried where its nodes would do in sum, were they empty and one."""
    shares_evenly: bool = False
    """Whether a group that prefers a tier is shared evenly first, if that can be done."""


@dataclass(frozen=True, slots=True)
class PresetRules:
    """All of a preset."""

    order: tuple[ObjectiveTerm, ...]
    """Compared from left to right; the first difference decides."""
    eviction_order: tuple[ObjectiveTerm, ...] = ()
    """The same where something is evicted; without it victims come just before the names."""
    lowest_job_tier: int = 0
    """Lowest tier at which the domain of the job is chosen."""
    walk: PlacementWalk | None = None
    """Not followed where the request lists strategies: these are about tiers, as the order is."""
    uses_task_buckets: bool = False
    """Whether pods are placed one by one, by buckets of roles and scores of nodes."""
    ignores_running_without_tiers: bool = False
    """Whether running pods of the gang mean nothing to a request that names no tier.

    Islands stay apart all the same.
    """


MORE = Direction.MORE
_NAME_TEXT = DomainSort(SortKey.NAME_TEXT)
VICTIM_TERMS = (
    ObjectiveTerm(ObjectiveKey.VICTIM_PRIORITIES),
    ObjectiveTerm(ObjectiveKey.VICTIM_GANGS),
    ObjectiveTerm(ObjectiveKey.VICTIM_PODS),
)
"""What is compared of victims, once the topology is the best: just before the names."""
FEWEST_VICTIMS_TERMS = (
    ObjectiveTerm(ObjectiveKey.VICTIM_PODS),
    ObjectiveTerm(ObjectiveKey.VICTIM_PRIORITIES),
    ObjectiveTerm(ObjectiveKey.VICTIM_GANGS),
)
"""What is compared of victims where few of them come first: just after the pods placed."""

_KUEUE_ORDER = (
    ObjectiveTerm(ObjectiveKey.PLACED, MORE),
    ObjectiveTerm(ObjectiveKey.STRATEGY),
    ObjectiveTerm(ObjectiveKey.EXISTING, MORE),
    ObjectiveTerm(ObjectiveKey.JOB_TIER),
    ObjectiveTerm(ObjectiveKey.GROUP_TIER),
    ObjectiveTerm(ObjectiveKey.HISTOGRAM),
    ObjectiveTerm(ObjectiveKey.PREFERRED_MISSES),
    ObjectiveTerm(ObjectiveKey.NODE_MISSES),
    ObjectiveTerm(ObjectiveKey.DOMAINS),
    ObjectiveTerm(ObjectiveKey.SURPLUS),
    ObjectiveTerm(ObjectiveKey.PARENT_SURPLUS),
    ObjectiveTerm(ObjectiveKey.NAMES),
)
_KUEUE_WALK = PlacementWalk(
    candidate_tiers=CandidateTiers.FROM_PREFERRED,
    domain_order=(DomainSort(SortKey.PREFERRED_LABELS), DomainSort(SortKey.TIGHT), _NAME_TEXT),
    fill_order=(DomainSort(SortKey.PREFERRED_LABELS), DomainSort(SortKey.ROOMY), _NAME_TEXT),
    best_fit_order=(DomainSort(SortKey.PREFERRED_LABELS), DomainSort(SortKey.TIGHT), _NAME_TEXT),
    untiered_node_order=(
        DomainSort(SortKey.PREFERRED_LABELS),
        DomainSort(SortKey.TIGHT),
        _NAME_TEXT,
    ),
)

PRESETS: MappingProxyType[Preset, PresetRules] = MappingProxyType(
    {
        Preset.KOORDINATOR: PresetRules(
            order=(
                ObjectiveTerm(ObjectiveKey.PLACED, MORE),
                ObjectiveTerm(ObjectiveKey.STRATEGY),
                ObjectiveTerm(ObjectiveKey.JOB_TIER),
                ObjectiveTerm(ObjectiveKey.GROUP_TIER),
                ObjectiveTerm(ObjectiveKey.HISTOGRAM),
                ObjectiveTerm(ObjectiveKey.SORT),
                ObjectiveTerm(ObjectiveKey.SURPLUS),
                ObjectiveTerm(ObjectiveKey.DOMAINS),
                ObjectiveTerm(ObjectiveKey.PARENT_SURPLUS),
                ObjectiveTerm(ObjectiveKey.NAMES),
            ),
            eviction_order=(
                ObjectiveTerm(ObjectiveKey.PLACED, MORE),
                ObjectiveTerm(ObjectiveKey.STRATEGY),
                ObjectiveTerm(ObjectiveKey.JOB_TIER),
                ObjectiveTerm(ObjectiveKey.GROUP_TIER),
                ObjectiveTerm(ObjectiveKey.HISTOGRAM),
                *VICTIM_TERMS,
                ObjectiveTerm(ObjectiveKey.NAMES),
            ),
            walk=PlacementWalk(
                candidate_tiers=CandidateTiers.LOWEST,
                domain_order=(
                    DomainSort(SortKey.RUNNING, AncestorOrder.OWN_FIRST),
                    DomainSort(SortKey.TIGHT_FOR_GANG, AncestorOrder.OWN_FIRST),
                    _NAME_TEXT,
                ),
                fill_order=(DomainSort(SortKey.ROOMY), _NAME_TEXT),
            ),
            ignores_running_without_tiers=True,
        ),
        Preset.KUEUE: PresetRules(order=_KUEUE_ORDER, walk=_KUEUE_WALK),
        Preset.KUEUE_BALANCED: PresetRules(
            order=_KUEUE_ORDER, walk=replace(_KUEUE_WALK, shares_evenly=True)
        ),
        Preset.KAI: PresetRules(
            order=(
                ObjectiveTerm(ObjectiveKey.PLACED, MORE),
                ObjectiveTerm(ObjectiveKey.STRATEGY),
                ObjectiveTerm(ObjectiveKey.EXISTING, MORE),
                ObjectiveTerm(ObjectiveKey.PREFERRED_MISSES),
                ObjectiveTerm(ObjectiveKey.JOB_TIER),
                ObjectiveTerm(ObjectiveKey.GROUP_TIER),
                ObjectiveTerm(ObjectiveKey.HISTOGRAM),
                ObjectiveTerm(ObjectiveKey.DOMAINS),
                ObjectiveTerm(ObjectiveKey.SURPLUS),
                ObjectiveTerm(ObjectiveKey.PARENT_SURPLUS),
                ObjectiveTerm(ObjectiveKey.NAMES),
            ),
            walk=PlacementWalk(
                candidate_tiers=CandidateTiers.FROM_PREFERRED,
                domain_order=(
                    DomainSort(SortKey.TIGHT, AncestorOrder.ANCESTORS_FIRST),
                    DomainSort(SortKey.TREE_ORDER),
                ),
                fill_order=(DomainSort(SortKey.ROOMY), DomainSort(SortKey.REVERSE_TREE_ORDER)),
                node_order=(DomainSort(SortKey.TIGHT), DomainSort(SortKey.TREE_ORDER)),
                flat_fill=FlatFill.FINEST_NAMED,
                starts_with_minimum=True,
                may_leave_domain=True,
            ),
        ),
        Preset.GODEL: PresetRules(
            order=(
                ObjectiveTerm(ObjectiveKey.PLACED, MORE),
                ObjectiveTerm(ObjectiveKey.STRATEGY),
                ObjectiveTerm(ObjectiveKey.EXISTING, MORE),
                ObjectiveTerm(ObjectiveKey.PREFERRED_MISSES),
                ObjectiveTerm(ObjectiveKey.JOB_TIER),
                ObjectiveTerm(ObjectiveKey.DOMAINS),
                ObjectiveTerm(ObjectiveKey.SORT),
                ObjectiveTerm(ObjectiveKey.SURPLUS),
                ObjectiveTerm(ObjectiveKey.NAMES),
            ),
            walk=PlacementWalk(
                candidate_tiers=CandidateTiers.NAMED_ONLY,
                domain_order=(
                    DomainSort(SortKey.USER_RULES, AncestorOrder.ANCESTORS_FIRST),
                    DomainSort(SortKey.TREE_ORDER),
                ),
                fill_order=(DomainSort(SortKey.USER_RULES), DomainSort(SortKey.TREE_ORDER)),
                node_order=(DomainSort(SortKey.TREE_ORDER),),
                flat_fill=FlatFill.FINEST_NAMED,
                starts_with_minimum=True,
                checks_total_capacity=True,
            ),
        ),
        Preset.SLURM_BLOCK: PresetRules(
            order=(
                ObjectiveTerm(ObjectiveKey.PLACED, MORE),
                ObjectiveTerm(ObjectiveKey.STRATEGY),
                ObjectiveTerm(ObjectiveKey.JOB_TIER),
                ObjectiveTerm(ObjectiveKey.SURPLUS),
                ObjectiveTerm(ObjectiveKey.DOMAINS),
                ObjectiveTerm(ObjectiveKey.FRAGMENTATION),
                ObjectiveTerm(ObjectiveKey.NAMES, MORE),
            ),
            lowest_job_tier=1,
            walk=PlacementWalk(
                candidate_tiers=CandidateTiers.LOWEST_FROM_LEAVES,
                domain_order=(DomainSort(SortKey.TIGHT), DomainSort(SortKey.REVERSE_TREE_ORDER)),
                fill_order=(DomainSort(SortKey.ROOMY), DomainSort(SortKey.REVERSE_TREE_ORDER)),
                node_order=(DomainSort(SortKey.TREE_ORDER),),
                flat_fill=FlatFill.LEAVES,
                best_fit_order=(DomainSort(SortKey.TIGHT), DomainSort(SortKey.REVERSE_TREE_ORDER)),
                is_slice_by_slice=True,
            ),
        ),
        Preset.VOLCANO: PresetRules(
            order=(
                ObjectiveTerm(ObjectiveKey.PLACED, MORE),
                ObjectiveTerm(ObjectiveKey.STRATEGY),
                ObjectiveTerm(ObjectiveKey.EXISTING, MORE),
                ObjectiveTerm(ObjectiveKey.JOB_TIER),
                ObjectiveTerm(ObjectiveKey.GROUP_TIER),
                ObjectiveTerm(ObjectiveKey.HISTOGRAM),
                ObjectiveTerm(ObjectiveKey.PREFERRED_MISSES),
                ObjectiveTerm(ObjectiveKey.SURPLUS),
                ObjectiveTerm(ObjectiveKey.DOMAINS),
                ObjectiveTerm(ObjectiveKey.NAMES),
            ),
            lowest_job_tier=1,
        ),
        Preset.TASK_TOPOLOGY: PresetRules(
            order=(
                ObjectiveTerm(ObjectiveKey.PLACED, MORE),
                ObjectiveTerm(ObjectiveKey.STRATEGY),
                ObjectiveTerm(ObjectiveKey.JOB_TIER),
                ObjectiveTerm(ObjectiveKey.TRAFFIC),
                ObjectiveTerm(ObjectiveKey.DOMAINS),
                ObjectiveTerm(ObjectiveKey.SURPLUS),
                ObjectiveTerm(ObjectiveKey.NAMES),
            ),
            uses_task_buckets=True,
        ),
        Preset.SLURM_TREE: PresetRules(
            order=(
                ObjectiveTerm(ObjectiveKey.PLACED, MORE),
                ObjectiveTerm(ObjectiveKey.STRATEGY),
                ObjectiveTerm(ObjectiveKey.NODE_WEIGHTS),
                ObjectiveTerm(ObjectiveKey.JOB_TIER),
                ObjectiveTerm(ObjectiveKey.DOMAINS),
                ObjectiveTerm(ObjectiveKey.SURPLUS),
                ObjectiveTerm(ObjectiveKey.FRAGMENTATION),
                ObjectiveTerm(ObjectiveKey.NAMES),
            ),
        ),
        Preset.OPTIMAL: PresetRules(
            order=(
                ObjectiveTerm(ObjectiveKey.PLACED, MORE),
                ObjectiveTerm(ObjectiveKey.STRATEGY),
                ObjectiveTerm(ObjectiveKey.EXISTING, MORE),
                ObjectiveTerm(ObjectiveKey.JOB_TIER),
                ObjectiveTerm(ObjectiveKey.GROUP_TIER),
                ObjectiveTerm(ObjectiveKey.HISTOGRAM),
                ObjectiveTerm(ObjectiveKey.PREFERRED_MISSES),
                ObjectiveTerm(ObjectiveKey.NODE_MISSES),
                ObjectiveTerm(ObjectiveKey.ISLANDS),
                ObjectiveTerm(ObjectiveKey.DOMAINS),
                ObjectiveTerm(ObjectiveKey.SORT),
                ObjectiveTerm(ObjectiveKey.SURPLUS),
                ObjectiveTerm(ObjectiveKey.PARENT_SURPLUS),
                ObjectiveTerm(ObjectiveKey.FRAGMENTATION),
                ObjectiveTerm(ObjectiveKey.TRAFFIC),
                ObjectiveTerm(ObjectiveKey.NAMES),
            ),
        ),
    }
)
