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


class Key(StrEnum):
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


class Term(NamedTuple):
    """One key of a preset and its direction."""

    key: Key
    direction: Direction = Direction.LESS


class Tried(StrEnum):
    """Tiers whose domains are tried, from the finest on, up to the highest that is allowed."""

    LOWEST = "lowest"
    """All; the domains of the first tier where any fits."""
    LEAVES = "leaves"
    """The same from tier 1 on."""
    ASKED = "asked"
    """From the finest preferred one; only the required one where none is preferred."""
    KEYS = "keys"
    """Only those that are named, and the cluster where none is required."""


class By(StrEnum):
    """What domains are sorted by."""

    RUNNING = "running"
    """More pods of the gang run there."""
    WISHED = "wished"
    """More room on nodes that carry the wished labels."""
    TIGHT = "tight"
    """Less room."""
    TIGHT_FOR_GANG = "tight-for-gang"
    """Less room, what is beyond the gang's size not counted."""
    ROOMY = "roomy"
    """More room."""
    RULES = "rules"
    """The user's sort rules; without any, less CPU in all."""
    TEXT = "text"
    """Names from the top down, compared as text."""
    FIRST = "first"
    """Tree order, which is natural order."""
    LAST = "last"
    """The reverse of it."""


class Climb(StrEnum):
    """Whether domains are compared by the domains above them too."""

    NO = "no"
    AFTER = "after"
    """By their own value, then by those above, nearest first."""
    BEFORE = "before"
    """By those above, the top one first, then by their own."""


class Sort(NamedTuple):
    """One rule by which domains are sorted."""

    by: By
    climb: Climb = Climb.NO


class Flat(StrEnum):
    """Below which tier nodes are filled one by one, whatever lies between."""

    NOWHERE = "nowhere"
    LEAVES = "leaves"
    """Tier 1."""
    ASKED = "asked"
    """The finest tier that is named."""


@dataclass(frozen=True, slots=True)
class Walk:
    """How a system tries domains and fills the one that it takes."""

    tried: Tried
    domains: tuple[Sort, ...]
    """In which order the domains of a tier are tried."""
    fill: tuple[Sort, ...]
    """In which order the domains inside it are filled."""
    nodes: tuple[Sort, ...] = ()
    """The same for nodes that are filled flat."""
    flat: Flat = Flat.NOWHERE
    rest: tuple[Sort, ...] = ()
    """Order among domains that hold all that is left; none: such a domain is nothing special."""
    scattered: tuple[Sort, ...] = ()
    """Order of nodes for a group that names no tier; none: it is filled as others are."""
    is_slice_by_slice: bool = False
    """Whether each slice is placed by itself, rather than as many as a domain holds."""
    starts_with_minimum: bool = False
    """Whether the domain is chosen for the fewest pods that will do."""
    grows_out: bool = False
    """Whether further pods may leave that domain."""
    checks_sums: bool = False
    """Whether a domain is tried where its nodes would do in sum, were they empty and one."""
    is_even: bool = False
    """Whether a group that prefers a tier is shared evenly first, if that can be done."""


@dataclass(frozen=True, slots=True)
class Rules:
    """All of a preset."""

    order: tuple[Term, ...]
    """Compared from left to right; the first difference decides."""
    evicting: tuple[Term, ...] = ()
    """The same where something is evicted; without it victims come just before the names."""
    lowest: int = 0
    """Lowest tier at which the domain of the job is chosen."""
    walk: Walk | None = None
    """Not followed where the request lists strategies: these are about tiers, as the order is."""
    has_buckets: bool = False
    """Whether pods are placed one by one, by buckets of roles and scores of nodes."""
    ignores_own_without_tiers: bool = False
    """Whether running pods of the gang mean nothing to a request that names no tier.

    Islands stay apart all the same.
    """


MORE = Direction.MORE
_TEXT = Sort(By.TEXT)
VICTIMS = (Term(Key.VICTIM_PRIORITIES), Term(Key.VICTIM_GANGS), Term(Key.VICTIM_PODS))
"""What is compared of victims, once the topology is the best: just before the names."""
FEWEST_VICTIMS = (Term(Key.VICTIM_PODS), Term(Key.VICTIM_PRIORITIES), Term(Key.VICTIM_GANGS))
"""What is compared of victims where few of them come first: just after the pods placed."""

_KUEUE = (
    Term(Key.PLACED, MORE),
    Term(Key.STRATEGY),
    Term(Key.EXISTING, MORE),
    Term(Key.JOB_TIER),
    Term(Key.GROUP_TIER),
    Term(Key.HISTOGRAM),
    Term(Key.PREFERRED_MISSES),
    Term(Key.NODE_MISSES),
    Term(Key.DOMAINS),
    Term(Key.SURPLUS),
    Term(Key.PARENT_SURPLUS),
    Term(Key.NAMES),
)
_KUEUE_WALK = Walk(
    tried=Tried.ASKED,
    domains=(Sort(By.WISHED), Sort(By.TIGHT), _TEXT),
    fill=(Sort(By.WISHED), Sort(By.ROOMY), _TEXT),
    rest=(Sort(By.WISHED), Sort(By.TIGHT), _TEXT),
    scattered=(Sort(By.WISHED), Sort(By.TIGHT), _TEXT),
)

PRESETS: MappingProxyType[Preset, Rules] = MappingProxyType(
    {
        Preset.KOORDINATOR: Rules(
            order=(
                Term(Key.PLACED, MORE),
                Term(Key.STRATEGY),
                Term(Key.JOB_TIER),
                Term(Key.GROUP_TIER),
                Term(Key.HISTOGRAM),
                Term(Key.SORT),
                Term(Key.SURPLUS),
                Term(Key.DOMAINS),
                Term(Key.PARENT_SURPLUS),
                Term(Key.NAMES),
            ),
            evicting=(
                Term(Key.PLACED, MORE),
                Term(Key.STRATEGY),
                Term(Key.JOB_TIER),
                Term(Key.GROUP_TIER),
                Term(Key.HISTOGRAM),
                *VICTIMS,
                Term(Key.NAMES),
            ),
            walk=Walk(
                tried=Tried.LOWEST,
                domains=(
                    Sort(By.RUNNING, Climb.AFTER),
                    Sort(By.TIGHT_FOR_GANG, Climb.AFTER),
                    _TEXT,
                ),
                fill=(Sort(By.ROOMY), _TEXT),
            ),
            ignores_own_without_tiers=True,
        ),
        Preset.KUEUE: Rules(order=_KUEUE, walk=_KUEUE_WALK),
        Preset.KUEUE_BALANCED: Rules(order=_KUEUE, walk=replace(_KUEUE_WALK, is_even=True)),
        Preset.KAI: Rules(
            order=(
                Term(Key.PLACED, MORE),
                Term(Key.STRATEGY),
                Term(Key.EXISTING, MORE),
                Term(Key.PREFERRED_MISSES),
                Term(Key.JOB_TIER),
                Term(Key.GROUP_TIER),
                Term(Key.HISTOGRAM),
                Term(Key.DOMAINS),
                Term(Key.SURPLUS),
                Term(Key.PARENT_SURPLUS),
                Term(Key.NAMES),
            ),
            walk=Walk(
                tried=Tried.ASKED,
                domains=(Sort(By.TIGHT, Climb.BEFORE), Sort(By.FIRST)),
                fill=(Sort(By.ROOMY), Sort(By.LAST)),
                nodes=(Sort(By.TIGHT), Sort(By.FIRST)),
                flat=Flat.ASKED,
                starts_with_minimum=True,
                grows_out=True,
            ),
        ),
        Preset.GODEL: Rules(
            order=(
                Term(Key.PLACED, MORE),
                Term(Key.STRATEGY),
                Term(Key.EXISTING, MORE),
                Term(Key.PREFERRED_MISSES),
                Term(Key.JOB_TIER),
                Term(Key.DOMAINS),
                Term(Key.SORT),
                Term(Key.SURPLUS),
                Term(Key.NAMES),
            ),
            walk=Walk(
                tried=Tried.KEYS,
                domains=(Sort(By.RULES, Climb.BEFORE), Sort(By.FIRST)),
                fill=(Sort(By.RULES), Sort(By.FIRST)),
                nodes=(Sort(By.FIRST),),
                flat=Flat.ASKED,
                starts_with_minimum=True,
                checks_sums=True,
            ),
        ),
        Preset.SLURM_BLOCK: Rules(
            order=(
                Term(Key.PLACED, MORE),
                Term(Key.STRATEGY),
                Term(Key.JOB_TIER),
                Term(Key.SURPLUS),
                Term(Key.DOMAINS),
                Term(Key.FRAGMENTATION),
                Term(Key.NAMES, MORE),
            ),
            lowest=1,
            walk=Walk(
                tried=Tried.LEAVES,
                domains=(Sort(By.TIGHT), Sort(By.LAST)),
                fill=(Sort(By.ROOMY), Sort(By.LAST)),
                nodes=(Sort(By.FIRST),),
                flat=Flat.LEAVES,
                rest=(Sort(By.TIGHT), Sort(By.LAST)),
                is_slice_by_slice=True,
            ),
        ),
        Preset.VOLCANO: Rules(
            order=(
                Term(Key.PLACED, MORE),
                Term(Key.STRATEGY),
                Term(Key.EXISTING, MORE),
                Term(Key.JOB_TIER),
                Term(Key.GROUP_TIER),
                Term(Key.HISTOGRAM),
                Term(Key.PREFERRED_MISSES),
                Term(Key.SURPLUS),
                Term(Key.DOMAINS),
                Term(Key.NAMES),
            ),
            lowest=1,
        ),
        Preset.TASK_TOPOLOGY: Rules(
            order=(
                Term(Key.PLACED, MORE),
                Term(Key.STRATEGY),
                Term(Key.JOB_TIER),
                Term(Key.TRAFFIC),
                Term(Key.DOMAINS),
                Term(Key.SURPLUS),
                Term(Key.NAMES),
            ),
            has_buckets=True,
        ),
        Preset.SLURM_TREE: Rules(
            order=(
                Term(Key.PLACED, MORE),
                Term(Key.STRATEGY),
                Term(Key.NODE_WEIGHTS),
                Term(Key.JOB_TIER),
                Term(Key.DOMAINS),
                Term(Key.SURPLUS),
                Term(Key.FRAGMENTATION),
                Term(Key.NAMES),
            ),
        ),
        Preset.OPTIMAL: Rules(
            order=(
                Term(Key.PLACED, MORE),
                Term(Key.STRATEGY),
                Term(Key.EXISTING, MORE),
                Term(Key.JOB_TIER),
                Term(Key.GROUP_TIER),
                Term(Key.HISTOGRAM),
                Term(Key.PREFERRED_MISSES),
                Term(Key.NODE_MISSES),
                Term(Key.ISLANDS),
                Term(Key.DOMAINS),
                Term(Key.SORT),
                Term(Key.SURPLUS),
                Term(Key.PARENT_SURPLUS),
                Term(Key.FRAGMENTATION),
                Term(Key.TRAFFIC),
                Term(Key.NAMES),
            ),
        ),
    }
)
