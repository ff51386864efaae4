"""The presets: orders and directions of the one objective vector, as data.

A preset says only in which order the keys are compared. What a key measures is said in
`objective`, how the best vector is found in `engine`.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple


class Preset(StrEnum):
    """Names of presets; those without a row in `PRESETS` are known but not supported yet."""

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


PRESETS: MappingProxyType[Preset, tuple[Term, ...]] = MappingProxyType(
    {
        Preset.KOORDINATOR: (
            Term(Key.PLACED, Direction.MORE),
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
        Preset.OPTIMAL: (
            Term(Key.PLACED, Direction.MORE),
            Term(Key.STRATEGY),
            Term(Key.EXISTING, Direction.MORE),
            Term(Key.JOB_TIER),
            Term(Key.GROUP_TIER),
            Term(Key.HISTOGRAM),
            Term(Key.PREFERRED_MISSES),
            Term(Key.NODE_MISSES),
            Term(Key.DOMAINS),
            Term(Key.SORT),
            Term(Key.SURPLUS),
            Term(Key.PARENT_SURPLUS),
            Term(Key.FRAGMENTATION),
            Term(Key.TRAFFIC),
            Term(Key.NAMES),
        ),
    }
)
"""Compared from left to right; the first difference decides."""

VICTIMS = (Term(Key.VICTIM_PRIORITIES), Term(Key.VICTIM_GANGS), Term(Key.VICTIM_PODS))
"""What is compared of victims, once the topology is the best: just before the names."""
FEWEST_VICTIMS = (Term(Key.VICTIM_PODS), Term(Key.VICTIM_PRIORITIES), Term(Key.VICTIM_GANGS))
"""What is compared of victims where few of them come first: just after the pods placed."""

ONLY_WITH_STRATEGIES = frozenset({Preset.KOORDINATOR})
"""Presets whose row holds only where the request lists strategies."""
