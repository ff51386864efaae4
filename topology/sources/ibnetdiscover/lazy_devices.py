"""The devices of a sweep, made from its columns for who looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, overload

import numpy as np

from topology.model.facts import Device
from topology.model.lazy_rows import LazyTuple
from topology.sources.ibnetdiscover.columns import SweepColumns
from topology.sources.ibnetdiscover.devices import DeviceBuilder
from topology.sources.infiniband.node_names import host_names, switch_name

_HOSTS: Final = tuple(b"Hh")
_NEAR: Final = 16
"""Devices that are made together: the HCAs of a host or two, but no switches."""
_MAX_NEAR_ROWS: Final = 64
MAX_KEPT: Final = 20_000
"""Devices of a sweep that are kept once they are made: a join asks for each some five times, and
so many take some 70 MB. Those of a larger sweep are made for each who asks."""


@dataclass(frozen=True, slots=True, eq=False)
class SweptDevices(LazyTuple[Device]):
    """The devices of a sweep, sorted by GUID; made when somebody looks at them."""

    sweep: SweepColumns
    _builders: list[DeviceBuilder] = field(default_factory=list, repr=False)
    """One, once somebody looked."""
    _made: list[tuple[Device, ...]] = field(default_factory=list, repr=False)
    """All of a small sweep, once somebody looked."""
    _recent: dict[int, tuple[Device, ...]] = field(default_factory=dict, repr=False)
    """The devices around the one asked for last: neighbors by GUID are mostly asked for next."""

    @property
    def _builder(self) -> DeviceBuilder:
        if not self._builders:
            found = self.sweep.columns.guids[self.sweep.aggregation()].tolist()
            aggregation = {f"{guid:016x}" for guid in found}
            self._builders.append(DeviceBuilder(self.sweep, aggregation))
        return self._builders[0]

    def _kept(self) -> tuple[Device, ...]:
        if not self._made:
            self._made.append(tuple(self._builder.build(self.sweep.records())))
        return self._made[0]

    def _all(self) -> tuple[Device, ...]:
        return tuple(self)

    def without_dump(self) -> SweptDevices:
        """Return the same devices, keeping no more of the text than descriptions."""
        return SweptDevices(self.sweep.without_dump())

    def names(self) -> list[str]:
        """Return what each device is called."""
        is_host = np.isin(self.sweep.columns.letters, _HOSTS)
        texts = self.sweep.descriptions()
        told = zip(texts, host_names(texts), is_host.tolist(), strict=True)
        return [host if is_own else switch_name(text) for text, (host, _), is_own in told]

    def __len__(self) -> int:
        """Return the number of devices, without making them."""
        return len(self.sweep)

    @overload
    def __getitem__(self, at: int) -> Device: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Device, ...]: ...
    def __getitem__(self, at: int | slice) -> Device | tuple[Device, ...]:
        """Return one device, or some."""
        if len(self) <= MAX_KEPT:
            return self._kept()[at]
        places = range(len(self))[at]
        if isinstance(places, range):
            return tuple(self._builder.build(self.sweep.records(places)))
        start = places - places % _NEAR
        found = self._recent.get(start)
        if found is None:
            stop = min(start + _NEAR, len(self))
            if self.sweep.columns.num_rows[start:stop].sum() > _MAX_NEAR_ROWS:
                return next(self._builder.build(self.sweep.records((places,))))
            found = tuple(self._builder.build(self.sweep.records(range(start, stop))))
            self._recent.clear()
            self._recent[start] = found
        return found[places - start]

    def __iter__(self) -> Iterator[Device]:
        """Yield all devices; of a large sweep few are there at a time."""
        if len(self) <= MAX_KEPT:
            return iter(self._kept())
        return self._builder.build(self.sweep.records())
