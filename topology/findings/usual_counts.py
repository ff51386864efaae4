"""Which numbers of cables are the design, although most peers have more.

Hosts with fewer NICs than others, and leaves with fewer up-links, are common. Lost cables look
different: they are few, and they leave most devices with one cable less and few with two cables
less. A number of cables that more devices have than lost cables explain is the design.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from topology.model.fabric_columns import Index
from topology.model.pair_counts import count_pairs
from topology.planes.plane import Plane
from topology.tiers.tier_groups import TierGroups

MIN_USUAL_PER_ODD = 8
"""Usual devices per unusual one from which the unusual ones are mistakes and not the design."""
_LOST_PER_PRESENT: Final = 1 / MIN_USUAL_PER_ODD
"""The most lost cables per present cable. If even more are absent, the design has fewer cables."""
_MIN_SHARE: Final = 1 / 32
"""The smallest share of devices for which a design has another number of cables."""
_MIN_DEVICES: Final = 2
"""One device alone never shows a design."""
_DEVIATIONS: Final = 2
"""Standard deviations by which a number of devices must exceed what lost cables explain."""
_MIN_EXPECTED: Final = 6
"""Number of devices expected to lack two cables from which their absence is no chance."""

CountsByUsual = Mapping[int, Sequence[int]]
"""The most frequent number of cables in a group to the numbers by design there, descending."""


def find_most_frequent(frequencies: Mapping[int, int]) -> int:
    """Return the most frequent count, the larger one of equals; 0 without any."""
    return max(frequencies.items(), key=lambda row: (row[1], row[0]))[0] if frequencies else 0


def find_designed_counts(frequencies: Mapping[int, int], usual: int) -> list[int]:
    """Return the numbers of cables by design: the usual one and smaller ones, descending.

    Args:
        frequencies: number of cables to number of devices that have it.
        usual: the number of cables that most devices have.
    """
    designed = [usual]
    num_devices = sum(frequencies.values())
    for count in range(usual - 1, 0, -1):
        num = frequencies.get(count, 0)
        if num >= max(_MIN_DEVICES, _MIN_SHARE * num_devices) and (
            num > _count_by_loss(frequencies, count, designed[-1])
            or _is_without_greater_loss(frequencies, count, designed[-1])
        ):
            designed.append(count)
    return designed


def expected_count(count: int, designed: Sequence[int]) -> int:
    """Return the number of cables that a device should have: the next number by design."""
    return min((number for number in designed if number >= count), default=count)


def _count_by_loss(frequencies: Mapping[int, int], count: int, full: int) -> float:
    """Return the largest number of devices with `count` cables that lost cables explain.

    Of a device with `full` cables, each is lost independently. The number of devices with one cable
    more shows how many could have lost another cable.
    """
    per_device = (count + 1) / (full - count) * _LOST_PER_PRESENT
    explained = per_device * frequencies.get(count + 1, 0)
    return explained + _DEVIATIONS * math.sqrt(explained)


def _is_without_greater_loss(frequencies: Mapping[int, int], count: int, full: int) -> bool:
    """Return whether many devices lack one cable, and nearly none lacks two.

    Lost at random, cables would leave the returned number of devices without two of them.
    """
    num_full = frequencies.get(full, 0)
    if not 1 < count == full - 1 or not num_full:  # devices without any cable are not counted
        return False
    expected = frequencies.get(count, 0) ** 2 * (full - 1) / (2 * full * num_full)
    return expected >= _MIN_EXPECTED and 4 * frequencies.get(count - 1, 0) <= expected


def find_designed_by_usual(groups: Iterable[Mapping[int, int]]) -> CountsByUsual:
    """Return the numbers of cables by design; groups with the same usual number are one sample.

    Args:
        groups: number of cables to number of devices that have it, one table per group.
    """
    samples: dict[int, Counter[int]] = defaultdict(Counter)
    for frequencies in groups:
        samples[find_most_frequent(frequencies)].update(frequencies)
    return {
        usual: find_designed_counts(frequencies, usual) for usual, frequencies in samples.items()
    }


def find_designed_host_links(plane: Plane, grouping: TierGroups) -> CountsByUsual:
    """Return the numbers of host cables by design. Cost: O(host cables + hosts log hosts)."""
    hosts = np.array([host for group in grouping.groups for host in group.hosts], np.intp)
    sizes = [len(group.hosts) for group in grouping.groups]
    num_links = count_host_links(plane, int(hosts.max(initial=-1)) + 1)
    group_of = np.repeat(np.arange(len(sizes)), sizes)
    return find_designed_by_usual(count_pairs(group_of, num_links[hosts]).by_left.values())


def count_host_links(plane: Plane, num_devices: int) -> Index:
    """Return the number of cables of each host, one entry per device."""
    return np.bincount(plane.host_edges.columns.a, minlength=num_devices)
