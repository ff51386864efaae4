"""Presets: the order of the objective vector of each scheduler system, as data.

`order` is the order in which a system compares the keys of the one objective vector;
`problem.objective` measures the keys. Some systems decide by a procedure that no vector describes.
They have a `walk` as well: the order in which domains are tried, and how they are filled, which
`emulation.walk` follows. If the steps of a system find nothing although the request fits, the exact
search answers in the preset's order, so that no blind spot of a system is copied.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple


class Preset(StrEnum):
    """The scheduler whose order of preferences a search follows."""

    KOORDINATOR = "koordinator"
    VOLCANO = "volcano"
    KUEUE = "kueue"
    KUEUE_BALANCED = "kueue-balanced"
    KAI = "kai"
    GODEL = "godel"
    TASK_TOPOLOGY = "task-topology"
    SLURM_TREE = "slurm-tree"
    SLURM_BLOCK = "slurm-block"
    KUBERNETES = "kubernetes"
    OPTIMAL = "optimal"


class ObjectiveKey(StrEnum):
    """Keys of the objective vector; the text of a key with several values gives their order."""

    PLACED = "placed"
    """Pods placed."""
    STRATEGY = "strategy"
    """Index of the first listed strategy that is feasible; 0 if none is listed."""
    NODE_WEIGHTS = "node_weights"
    """Pods per node weight of the request, the heaviest first; unlisted nodes weigh 0."""
    EXISTING = "existing"
    """Per tier, coarsest first: pods placed in a domain where the gang already runs."""
    JOB_TIER = "job_tier"
    """Tier of the lowest domain that holds the whole job, running pods included."""
    GROUP_TIER = "group_tier"
    """Highest tier over the parts; a part is a group, or a slice of a group."""
    HISTOGRAM = "histogram"
    """Per tier, coarsest first: the parts of that tier."""
    PREFERRED_MISSES = "preferred_misses"
    """Preferred tiers that are missed, counted over the job and its groups."""
    NODE_MISSES = "node_misses"
    """Preferred labels that nodes lack, counted over pods."""
    ISLANDS = "islands"
    """If islands are to be spared: the top domains that the job uses, and their slots.

    0, 0 for a job whose domain is of a lower tier.
    """
    DOMAINS = "domains"
    """Per tier, coarsest first: domains used."""
    SORT = "sort"
    """The user's sort rules on the domain of the job, one value each; descending ones negated."""
    SURPLUS = "surplus"
    """Slots of the scarcest shape that stay free in the domain of the job."""
    PARENT_SURPLUS = "surplus_parents"
    """The same for the parents of that domain, nearest first."""
    FRAGMENTATION = "fragmentation"
    """Per tier, finest first: slots of the scarcest shape that stay free in the domains used."""
    TRAFFIC = "traffic"
    """Weight × tier over pairs of pods that communicate; affinity is 1, anti-affinity -1."""
    VICTIM_PRIORITIES = "victim_priorities"
    """Evicted pods per priority, the highest first; only if pods are evicted."""
    VICTIM_GANGS = "victim_gangs"
    """Gangs that lose a pod."""
    VICTIM_PODS = "victim_pods"
    """Pods evicted."""
    NAMES = "names"
    """Position of the job's domain in the natural order of names."""


class Direction(StrEnum):
    """Whether a smaller or a larger value is better."""

    LESS = "less"
    MORE = "more"


class ObjectiveTerm(NamedTuple):
    """One key of a preset and its direction."""

    key: ObjectiveKey
    direction: Direction = Direction.LESS


class CandidateTiers(StrEnum):
    """Tiers whose domains are tried, finest first, up to the highest allowed tier."""

    LOWEST = "lowest"
    """All tiers; only the domains of the first tier with a fitting domain."""
    LOWEST_FROM_LEAVES = "leaves"
    """The same, from tier 1 on."""
    FROM_PREFERRED = "asked"
    """From the finest preferred tier on; only the required tier if none is preferred."""
    REQUIRED_ONLY = "required"
    """Only the required tier; without one, the whole outer domain."""
    NAMED_ONLY = "keys"
    """Only the tiers that the request names, and the cluster if no tier is required."""


class SortKey(StrEnum):
    """The value by which domains are sorted."""

    RUNNING = "running"
    """More running pods of the gang first."""
    PREFERRED_LABELS = "preferred-labels"
    """More preferred labels on nodes with a free slot first."""
    TIGHT = "tight"
    """Fewer slots first."""
    SMALL_OFFER = "small-offer"
    """Fewer slots first; slots of a node beyond the size of the gang do not count.

    Slots that multiples leave unused do not count either.
    """
    LARGE_OFFER = "large-offer"
    """The same, more slots first."""
    ROOMY = "roomy"
    """More slots first."""
    FULLEST = "fullest"
    """The larger share of the free resources taken by the whole request first, then names as text.

    All nodes of the domain count, also those that the request excludes.
    """
    USER_RULES = "rules"
    """The sort rules of the problem."""
    NAME_TEXT = "text"
    """Names from the top domain down, compared as text."""
    OWN_NAME_TEXT = "own-text"
    """Own names compared as text, whatever the names of the domains above."""
    TREE_ORDER = "first"
    """Tree order, which is natural order."""
    REVERSE_TREE_ORDER = "last"
    """Reverse tree order."""


class AncestorOrder(StrEnum):
    """Whether the domains above a domain are compared too."""

    NONE = "no"
    OWN_FIRST = "after"
    """The own value first, then the values of ancestors, nearest first."""
    ANCESTORS_FIRST = "before"
    """The values of ancestors first, from the top, then the own value."""


class DomainSort(NamedTuple):
    """One rule by which domains are sorted."""

    key: SortKey
    ancestors: AncestorOrder = AncestorOrder.NONE


class FlatFill(StrEnum):
    """Tier below which nodes are filled one by one, without regard to the tiers between."""

    NOWHERE = "nowhere"
    LEAVES = "leaves"
    """Tier 1."""
    FINEST_NAMED = "asked"
    """The finest tier that the request names."""


@dataclass(frozen=True, slots=True)
class PlacementWalk:
    """How a system tries domains, and fills the domain that it chooses."""

    candidate_tiers: CandidateTiers
    domain_order: tuple[DomainSort, ...]
    """Order in which the domains of a tier are tried."""
    fill_order: tuple[DomainSort, ...] = ()
    """Order in which the domains inside the chosen one are filled, unless filled by level."""
    node_order: tuple[DomainSort, ...] = ()
    """The same for nodes that are filled flat."""
    flat_fill: FlatFill = FlatFill.NOWHERE
    best_fit_order: tuple[DomainSort, ...] = ()
    """Order among domains that hold all remaining pods; empty: such domains get no preference."""
    is_slice_by_slice: bool = False
    """Whether each slice is placed by itself, rather than as many as a domain holds."""
    starts_with_minimum: bool = False
    """Whether the domain is chosen for the minimum number of pods."""
    may_leave_domain: bool = False
    """Whether pods beyond the minimum may leave that domain."""
    checks_total_capacity: bool = False
    """Whether a domain is tried if the total capacity of its nodes, when empty, is enough."""
    spreads_from_emptiest: bool = False
    """Whether the nodes of the preferred domain that ranks last by `domain_order` come first.

    The nearest scope that prefers a tier decides, with the free resources before it was placed.
    """
    scores_domains: bool = False
    """Whether every domain is filled and scored as kube-scheduler does, and the best one taken."""
    fills_by_level: bool = False
    """Whether the parts of all chosen domains are compared together, tier by tier."""
    shares_evenly: bool = False
    """Whether a group that prefers a tier is first shared evenly, if possible."""


@dataclass(frozen=True, slots=True)
class PresetRules:
    """All rules of one preset."""

    order: tuple[ObjectiveTerm, ...]
    """Compared from left to right; the first difference decides."""
    eviction_order: tuple[ObjectiveTerm, ...] = ()
    """The order if pods are evicted for the best topology.

    If empty, victims are compared just before the names.
    """
    lowest_job_tier: int = 0
    """Lowest tier at which the domain of the job is chosen."""
    walk: PlacementWalk | None = None
    """Not followed if the request lists strategies, which are about tiers, as `order` is."""
    always_sorts: bool = False
    """Whether domains are sorted by less CPU capacity if the user gives no sort rule."""
    uses_task_buckets: bool = False
    """Whether pods are placed one by one, by buckets of roles and scores of nodes."""
    refills_leaves: bool = False
    """Whether equally good leaves are told apart as Slurm's tree plugin does."""
    takes_unplaced_last: bool = True
    """Whether a node without a place in the tree is used only if no other placement is as close.

    Most systems do not know such a node. Those that score each node by itself decide by its score.
    """
    ignores_running_without_tiers: bool = False
    """Whether a request that names no tier ignores the running pods of the gang.

    Islands still stay separate.
    """

    @property
    def has_steps(self) -> bool:
        """Whether a procedure places the gang before the search does."""
        return self.walk is not None or self.uses_task_buckets


CLOSENESS_KEYS = frozenset(ObjectiveKey) - {
    *(ObjectiveKey.ISLANDS, ObjectiveKey.DOMAINS, ObjectiveKey.SURPLUS, ObjectiveKey.NAMES),
    *(ObjectiveKey.PARENT_SURPLUS, ObjectiveKey.FRAGMENTATION),
}
"""What a gang gets and evicts; the other keys are about what stays free, and about names."""


def _terms(text: str) -> tuple[ObjectiveTerm, ...]:
    """Return the terms of an order by the names of their keys; + where more is better."""
    return tuple(
        ObjectiveTerm(
            ObjectiveKey(word.lstrip("+")),
            Direction.MORE if word.startswith("+") else Direction.LESS,
        )
        for word in text.split()
    )


_NAME_TEXT = DomainSort(SortKey.NAME_TEXT)
VICTIM_TERMS = _terms("victim_priorities victim_gangs victim_pods")
"""Order among victims if the best topology comes first: compared just before the names."""
FEWEST_VICTIMS_TERMS = _terms("victim_pods victim_priorities victim_gangs")
"""Order among victims if the fewest victims come first: just after the pods placed."""

_KUEUE_ORDER = _terms(
    "+placed strategy +existing job_tier group_tier histogram preferred_misses node_misses "
    "domains surplus surplus_parents names"
)
_KUEUE_WALK = PlacementWalk(
    candidate_tiers=CandidateTiers.FROM_PREFERRED,
    domain_order=(DomainSort(SortKey.PREFERRED_LABELS), DomainSort(SortKey.TIGHT), _NAME_TEXT),
    fills_by_level=True,
)

PRESETS: MappingProxyType[Preset, PresetRules] = MappingProxyType(
    {
        Preset.KOORDINATOR: PresetRules(
            order=_terms(
                "+placed strategy job_tier group_tier histogram sort surplus domains "
                "surplus_parents names"
            ),
            eviction_order=_terms(
                "+placed strategy job_tier group_tier histogram victim_priorities victim_gangs "
                "victim_pods names"
            ),
            walk=PlacementWalk(
                candidate_tiers=CandidateTiers.LOWEST,
                domain_order=(
                    DomainSort(SortKey.RUNNING, AncestorOrder.OWN_FIRST),
                    DomainSort(SortKey.SMALL_OFFER, AncestorOrder.OWN_FIRST),
                    DomainSort(SortKey.OWN_NAME_TEXT),
                ),
                fill_order=(
                    DomainSort(SortKey.RUNNING),
                    DomainSort(SortKey.LARGE_OFFER),
                    DomainSort(SortKey.OWN_NAME_TEXT),
                ),
            ),
            ignores_running_without_tiers=True,
        ),
        Preset.KUEUE: PresetRules(order=_KUEUE_ORDER, walk=_KUEUE_WALK),
        Preset.KUEUE_BALANCED: PresetRules(
            order=_KUEUE_ORDER, walk=replace(_KUEUE_WALK, shares_evenly=True)
        ),
        Preset.KAI: PresetRules(
            order=_terms(
                "+placed strategy +existing preferred_misses job_tier group_tier histogram "
                "domains surplus surplus_parents names"
            ),
            walk=PlacementWalk(
                candidate_tiers=CandidateTiers.FROM_PREFERRED,
                domain_order=(DomainSort(SortKey.FULLEST, AncestorOrder.ANCESTORS_FIRST),),
                node_order=(DomainSort(SortKey.TIGHT), DomainSort(SortKey.OWN_NAME_TEXT)),
                spreads_from_emptiest=True,
                starts_with_minimum=True,
                may_leave_domain=True,
            ),
        ),
        Preset.GODEL: PresetRules(
            order=_terms(
                "+placed strategy +existing preferred_misses job_tier domains sort surplus names"
            ),
            always_sorts=True,
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
            order=_terms("+placed strategy job_tier surplus domains fragmentation +names"),
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
            order=_terms(
                "+placed strategy +existing job_tier group_tier histogram preferred_misses "
                "surplus domains names"
            ),
            lowest_job_tier=1,
        ),
        Preset.TASK_TOPOLOGY: PresetRules(
            order=_terms("+placed strategy job_tier traffic domains surplus names"),
            uses_task_buckets=True,
            takes_unplaced_last=False,
        ),
        Preset.SLURM_TREE: PresetRules(
            order=_terms(
                "+placed strategy node_weights job_tier domains surplus fragmentation names"
            ),
            refills_leaves=True,
        ),
        Preset.KUBERNETES: PresetRules(
            order=_terms("+placed strategy +existing surplus job_tier names"),
            takes_unplaced_last=False,
            walk=PlacementWalk(
                candidate_tiers=CandidateTiers.REQUIRED_ONLY,
                domain_order=(DomainSort(SortKey.TREE_ORDER),),
                scores_domains=True,
            ),
        ),
        Preset.OPTIMAL: PresetRules(
            order=_terms(
                "+placed strategy +existing job_tier group_tier histogram preferred_misses "
                "node_misses islands domains sort surplus surplus_parents fragmentation traffic "
                "names"
            ),
        ),
    }
)
