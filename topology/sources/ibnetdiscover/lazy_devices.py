"""The devices of a sweep, built from its columns when they are first read."""

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
"""Devices that are built together: the HCAs of one or two hosts, but no switches."""
_MAX_NEAR_ROWS: Final = 64
MAX_KEPT: Final = 20_000
"""The largest number of devices for which all are kept after they are built: a join reads each
about five times, and so many take about 70 MB. The devices of a larger sweep are built for each
read."""


@dataclass(frozen=True, slots=True, eq=False)
class SweptDevices(LazyTuple[Device]):
    """The devices of a sweep, sorted by GUID; built when they are first read."""

    sweep: SweepColumns
    _builders: list[DeviceBuilder] = field(default_factory=list, repr=False)
    """One builder after the first read, empty before."""
    _made: list[tuple[Device, ...]] = field(default_factory=list, repr=False)
    """All devices of a small sweep after the first read, empty before."""
    _recent: dict[int, tuple[Device, ...]] = field(default_factory=dict, repr=False)
    """The devices around the last one read: the next read is often of a device with a near GUID."""

    @property
    def _builder(self) -> DeviceBuilder:
        if not self._builders:
            guids = self.sweep.columns.guids[self.sweep.aggregation()].tolist()
            aggregation = {f"{guid:016x}" for guid in guids}
            self._builders.append(DeviceBuilder(self.sweep, aggregation))
        return self._builders[0]

    def _kept(self) -> tuple[Device, ...]:
        if not self._made:
            self._made.append(tuple(self._builder.build(self.sweep.records())))
        return self._made[0]

    def _all(self) -> tuple[Device, ...]:
        return tuple(self)

    def names(self) -> list[str]:
        """Return the name of each device."""
        is_host = np.isin(self.sweep.columns.letters, _HOSTS)
        texts = self.sweep.descriptions()
        host_labels = zip(texts, host_names(texts), is_host.tolist(), strict=True)
        return [host if is_ca else switch_name(text) for text, (host, _), is_ca in host_labels]

    def __len__(self) -> int:
        """Return the number of devices, without building them."""
        return len(self.sweep)

    @overload
    def __getitem__(self, at: int) -> Device: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Device, ...]: ...
    def __getitem__(self, at: int | slice) -> Device | tuple[Device, ...]:
        """Return one device, or the devices of a slice."""
        if len(self) <= MAX_KEPT:
            return self._kept()[at]
        places = range(len(self))[at]
        if isinstance(places, range):
            return tuple(self._builder.build(self.sweep.records(places)))
        start = places - places % _NEAR
        devices = self._recent.get(start)
        if devices is None:
            stop = min(start + _NEAR, len(self))
            if self.sweep.columns.num_rows[start:stop].sum() > _MAX_NEAR_ROWS:
                return next(self._builder.build(self.sweep.records((places,))))
            devices = tuple(self._builder.build(self.sweep.records(range(start, stop))))
            self._recent.clear()
            self._recent[start] = devices
        return devices[places - start]

    def __iter__(self) -> Iterator[Device]:
        """Yield all devices; builds those of a large sweep in batches."""
        if len(self) <= MAX_KEPT:
            return iter(self._kept())
        return self._builder.build(self.sweep.records())
