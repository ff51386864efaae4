"""Which numbers of cables are the design, although most peers have more.

Hosts with fewer NICs than others, and leaves with fewer up-links, are common. Lost cables look
different: they are few, and they leave most devices with one cable less and few with two cables
less. A number of cables that more devices have than lost cables explain is the design.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from topology.model.fabric import Index
from topology.planes.plane import Plane

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
    """Return whether many devices lack one cable, and nearly none lacks more.

    Cables lost at random would leave about `expected` devices without two of them.
    """
    num_full = frequencies.get(full, 0)
    if not 1 < count == full - 1 or not num_full:  # devices without any cable are not counted
        return False
    expected = frequencies.get(count, 0) ** 2 * (full - 1) / (2 * full * num_full)
    num_below = sum(num for fewer, num in frequencies.items() if fewer < count)
    return expected >= _MIN_EXPECTED and 4 * num_below <= expected


def find_designed_by_group(
    groups: Sequence[Mapping[int, int]], num_ports: Sequence[int]
) -> list[Sequence[int]]:
    """Return the numbers of cables by design of each group, descending.

    Groups with the same usual number are one sample.

    Args:
        groups: number of cables to number of devices that have it, one table per group.
        num_ports: per group, the number of ports that at least half of its devices use.
    """
    usual = list(map(_find_usual, groups, num_ports))
    samples: dict[int, Counter[int]] = defaultdict(Counter)
    for number, frequencies in zip(usual, groups, strict=True):
        samples[number].update(frequencies)
    designed = {
        number: find_designed_counts(frequencies, number) for number, frequencies in samples.items()
    }
    return [designed[number] for number in usual]


def _find_usual(frequencies: Mapping[int, int], num_ports: int) -> int:
    """Return the usual number of cables of a group.

    If each device of a small group lost a few of many cables, most of them lack one or two. Nearly
    no device has all cables then, but each port is in use on most devices.
    """
    most = find_most_frequent(frequencies)
    num, num_devices = frequencies.get(most, 0), sum(frequencies.values())
    is_even = (num_devices - num) * MIN_USUAL_PER_ODD <= num
    return most if is_even else max(most, num_ports)


def count_host_links(plane: Plane, num_devices: int) -> Index:
    """Return the number of cables of each host, one entry per device."""
    return np.bincount(plane.host_edges.columns.a, minlength=num_devices)
