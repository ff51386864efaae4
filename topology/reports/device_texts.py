"""The texts of packed devices that differ among devices of one kind of hardware. Pure.

They are the names of the device and of its neighbors, and the values of all ids, in the order in
which `packed_devices.render_packed` writes them. All else is equal in devices that are alike.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias, cast

from topology.model.facts import Device, Neighbor
from topology.model.ids import Id
from topology.reports.packed_devices import render_packed, unpack_device

_MAX_SAMPLES: Final = 256
_MAX_OF_LENGTH: Final = 4
"""Samples with one number of texts: a device with as many is compared with each of them."""
_MIN_SEEN: Final = 3
TextPick: TypeAlias = Callable[[Sequence[str]], tuple[str, ...]]


class DeviceTexts:
    """Reads the texts of packed devices that are like a sample."""

    def __init__(self, sample: Device) -> None:
        """Find where the sample has them."""
        self._num_parts = len(render_packed(sample).split('"'))
        self._pick = pick_texts(find_packed_texts(number_packed(sample)))

    def read(self, packed: bytes) -> tuple[str, ...] | None:
        """Return the texts of a device; None if it is not like the sample. Cost: 30 ns a text."""
        parts = zlib.decompress(packed).decode().split('"')
        return self._pick(parts) if len(parts) == self._num_parts else None


class _Sample(NamedTuple):
    pick_fixed: TextPick
    fixed: tuple[str, ...]
    """What a like device has as well."""
    device: Device


class DeviceSamples:
    """Finds a device that a packed one is like; a bounded number of them."""

    def __init__(self) -> None:
        """Start without samples."""
        self._samples: dict[int, list[_Sample]] = {}
        self._seen: Counter[int] = Counter()
        self.num_samples = 0

    def find(self, packed: bytes) -> Device | None:
        """Return a device that is like a packed one; None if none is known.

        Cost: 50 ns a text. The device becomes a sample if several of its size were seen.
        """
        text = zlib.decompress(packed).decode()
        if "\\" in text:
            return None
        parts = text.split('"')
        known = self._samples.get(len(parts), [])
        for sample in known:
            if sample.pick_fixed(parts) == sample.fixed:
                return sample.device
        if len(known) >= _MAX_OF_LENGTH or self.num_samples >= _MAX_SAMPLES:
            return None
        if len(self._seen) >= _MAX_SAMPLES:
            self._seen.clear()
        self._seen[len(parts)] += 1
        if self._seen[len(parts)] <= _MIN_SEEN:
            return None
        device = unpack_device(packed)
        varying = set(find_packed_texts(number_packed(device)))
        pick = pick_texts([index for index in range(len(parts)) if index not in varying])
        self._samples.setdefault(len(parts), []).append(_Sample(pick, pick(parts), device))
        self.num_samples += 1
        return device


def mark_texts(sample: Device, mark: Callable[[int], str]) -> Device:
    """Return a device with the mark of its number in place of each text that may differ."""
    numbers = count()

    def mark_next() -> str:
        return mark(next(numbers))

    def mark_ids(ids: Sequence[Id]) -> tuple[Id, ...]:
        return tuple([one._replace(value=mark_next()) for one in ids])

    def mark_neighbors(neighbors: Sequence[Neighbor]) -> Iterator[Neighbor]:
        for near in neighbors:
            ids, name = mark_ids(near.device_ids), mark_next()
            port_ids, port_name = mark_ids(near.port_ids), mark_next()
            yield Neighbor(ids, name, port_ids, port_name, *near[4:])

    name, ids, ports = mark_next(), mark_ids(sample.ids), []
    for port in sample.ports:
        own = mark_ids(port.ids)
        ports.append(port._replace(ids=own, neighbors=tuple(mark_neighbors(port.neighbors))))
    return replace(sample, name=name, ids=ids, ports=tuple(ports))


def find_packed_texts(row: Any) -> list[int]:  # noqa: ANN401 - JSON
    """Return the indices of the names and of the values of ids in a packed device.

    Args:
        row: the JSON of `render_packed` in which each text is its index.
    """
    _, name, _, ids, ports = row
    found = [name, *(one[1] for one in ids)]
    for port in ports:
        found += [one[1] for one in port[1]]
        for neighbor in port[9]:
            device_ids, device_name, port_ids, port_name, *_ = neighbor
            found += [one[1] for one in device_ids]
            found += [device_name, *(one[1] for one in port_ids), port_name]
    return list(map(int, found))


def number_packed(device: Device) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON of `render_packed` in which each text is its index among the parts."""
    return json.loads(number_texts(render_packed(device).split('"')))


def number_texts(parts: Sequence[str]) -> str:
    """Return the JSON in which each text is its index in `parts`; keys stay."""
    numbered = list(parts)
    for index in range(1, len(parts) - 1, 2):
        if not parts[index + 1].lstrip().startswith(":"):
            numbered[index] = str(index)
    return '"'.join(numbered)


def pick_texts(indices: Sequence[int]) -> TextPick:
    """Return a function that returns the entries at some indices."""
    if not indices:
        return lambda _: ()
    if len(indices) == 1:
        index = indices[0]
        return lambda parts: (parts[index],)
    return cast("TextPick", itemgetter(*indices))
