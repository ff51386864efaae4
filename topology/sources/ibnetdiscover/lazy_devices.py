"""The devices of a sweep, built from its columns when they are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, overload

import numpy as np

from topology.model.facts import Device
from topology.model.ids import Id, IdKind
from topology.model.lazy_rows import LazyTuple
from topology.sources.ibnetdiscover.columns import NO_GUID, SweepColumns
from topology.sources.ibnetdiscover.devices import DeviceBuilder
from topology.sources.infiniband.node_names import host_names, switch_name

_HOSTS: Final = tuple(b"Hh")


@dataclass(frozen=True, slots=True, eq=False)
class SweptDevices(LazyTuple[Device]):
    """The devices of a sweep, sorted by GUID; each read builds them, and none is stored."""

    sweep: SweepColumns
    _builders: list[DeviceBuilder] = field(default_factory=list, repr=False)
    """One builder after the first read, empty before."""

    @property
    def _builder(self) -> DeviceBuilder:
        if not self._builders:
            guids = self.sweep.columns.guids[self.sweep.aggregation()].tolist()
            aggregation = {f"{guid:016x}" for guid in guids}
            self._builders.append(DeviceBuilder(self.sweep, aggregation))
        return self._builders[0]

    def _all(self) -> tuple[Device, ...]:
        return tuple(self)

    def names(self) -> list[str]:
        """Return the name of each device."""
        is_host = np.isin(self.sweep.columns.letters, _HOSTS)
        texts = self.sweep.descriptions()
        host_labels = zip(texts, host_names(texts), is_host.tolist(), strict=True)
        return [host if is_ca else switch_name(text) for text, (host, _), is_ca in host_labels]

    def ids_at(self, index: int) -> tuple[Id, ...]:
        """Return the ids of one device, without building it."""
        columns = self.sweep.columns
        kind = IdKind.NODE_GUID if chr(columns.letters[index]).isupper() else IdKind.PORT_GUID
        ids = (Id(kind, f"{columns.guids.item(index):016x}"),)
        image = columns.images.item(index)
        return ids if image == NO_GUID else (*ids, Id(IdKind.SYSTEM_IMAGE_GUID, f"{image:016x}"))

    def __eq__(self, other: object) -> bool:
        """Compare with another sweep by its columns, with any other sequence like a tuple."""
        if isinstance(other, SweptDevices):
            return self is other or self.sweep.has_same_rows(other.sweep)
        return LazyTuple.__eq__(self, other)

    __hash__ = LazyTuple.__hash__

    def __len__(self) -> int:
        """Return the number of devices, without building them."""
        return len(self.sweep)

    @overload
    def __getitem__(self, at: int) -> Device: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Device, ...]: ...
    def __getitem__(self, at: int | slice) -> Device | tuple[Device, ...]:
        """Return one device, or the devices of a slice."""
        places = range(len(self))[at]
        if isinstance(places, range):
            return tuple(self._builder.build(self.sweep.records(places)))
        return next(self._builder.build(self.sweep.records((places,))))

    def __iter__(self) -> Iterator[Device]:
        """Yield all devices, built in batches."""
        return self._builder.build(self.sweep.records())
