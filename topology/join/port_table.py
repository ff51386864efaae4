"""The ports of a fabric as arrays, and rows of them for whoever looks at some.

Half a million ports are 15 MB so, and ten times that as rows. Names, RDMA devices and subnets are
few different texts: each port has the number of its own.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from topology.model.fabric import FabricPort
from topology.model.fabric_columns import (
    MEDIA,
    MEDIUM_CODES,
    STATE_CODES,
    STATES,
    UNKNOWN_RATE,
    Codes,
    Flags,
    Index,
    NameCodes,
    PortNames,
    Rates,
    rate_or_none,
)
from topology.model.facts import GpuDistance
from topology.model.lazy_rows import LazyRows

_Numbers = NDArray[np.int32]

_DISTANCES: Final[tuple[GpuDistance | None, ...]] = (None, *GpuDistance)
_DISTANCE_CODES: Final = {distance: code for code, distance in enumerate(_DISTANCES)}
_FIRMWARE_LLDP_VALUES: Final = (None, False, True)
_FIRMWARE_LLDP_CODES: Final = {eats: code for code, eats in enumerate(_FIRMWARE_LLDP_VALUES)}


class PortTable(NamedTuple):
    """The arrays, one entry per port. Numbers of texts count from 1; 0 stands for none."""

    devices: Index
    names: _Numbers
    media: Codes
    states: Codes
    rates: Rates
    rdma: _Numbers
    distances: Codes
    firmware_lldp: Codes
    subnets: _Numbers
    texts: tuple[str, ...]
    """Different ones."""

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """All arrays, in their order."""
        return self[:-1]

    @property
    def size(self) -> int:
        """How many ports there are."""
        return len(self.devices)

    @property
    def has_gpu_distance(self) -> Flags:
        """Whether the distance of each to a GPU is told."""
        placed: Flags = self.distances > 0
        return placed

    def fetch_rows(self) -> LazyRows[FabricPort]:
        """Return the ports as rows, made when somebody looks."""
        return LazyRows(self.size, self._rows_at)

    def port_names(self) -> PortNames:
        """Return their names, made when somebody looks."""
        return PortNames(self.size, self._names_at, self._name_codes)

    def replace_ports(self, span: tuple[int, int], ports: Sequence[FabricPort]) -> PortTable:
        """Return the table with other ports in a span. Cost: copies of the arrays that change."""
        builder = PortTableBuilder(self.texts)
        builder.extend(ports)
        fresh = builder.build()
        pairs = zip(self.columns, fresh.columns, strict=True)
        return PortTable._make((*(splice(was, span, now) for was, now in pairs), fresh.texts))

    def _rows_at(self, places: Sequence[int]) -> Iterator[FabricPort]:
        chosen = np.fromiter(places, np.intp, len(places))
        texts = self.texts
        for device, name, medium, state, bps, rdma, distance, eats, subnet in zip(
            *(column[chosen].tolist() for column in self.columns), strict=True
        ):
            yield FabricPort(
                device,
                texts[name - 1],
                MEDIA[medium],
                STATES[state],
                rate_or_none(bps),
                texts[rdma - 1] if rdma else None,
                _DISTANCES[distance],
                _FIRMWARE_LLDP_VALUES[eats],
                texts[subnet - 1] if subnet else None,
            )

    def _names_at(self, places: Sequence[int]) -> Iterator[str]:
        chosen = np.fromiter(places, np.intp, len(places))
        return (self.texts[name - 1] for name in self.names[chosen].tolist())

    def _name_codes(self, places: Index) -> NameCodes:
        used, codes = np.unique(self.names[places], return_inverse=True)
        return NameCodes(codes, [self.texts[name - 1] for name in used.tolist()])


class PortTableBuilder:
    """Takes in ports, one after the other."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        """Know some texts already."""
        self._texts = {text: number for number, text in enumerate(texts, 1)}
        self._devices, self._rates = array("q"), array("q")
        self._names, self._rdma, self._subnets = array("i"), array("i"), array("i")
        self._media, self._states = bytearray(), bytearray()
        self._distances, self._firmware_lldp = bytearray(), bytearray()

    def __len__(self) -> int:
        """Return how many there are by now."""
        return len(self._devices)

    def extend(self, ports: Iterable[FabricPort]) -> None:
        """Take in more ports."""
        for port in ports:
            self._devices.append(port.device)
            self._rates.append(UNKNOWN_RATE if port.rate_bps is None else port.rate_bps)
            self._names.append(self._intern(port.name))
            self._rdma.append(self._intern(port.rdma_device))
            self._subnets.append(self._intern(port.subnet))
            self._media.append(MEDIUM_CODES[port.medium])
            self._states.append(STATE_CODES[port.state])
            self._distances.append(_DISTANCE_CODES[port.gpu_distance])
            self._firmware_lldp.append(_FIRMWARE_LLDP_CODES[port.firmware_lldp])

    def _intern(self, text: str | None) -> int:
        return 0 if text is None else self._texts.setdefault(text, len(self._texts) + 1)

    def build(self) -> PortTable:
        """Return all of them."""
        return PortTable(
            devices=np.array(self._devices, np.intp),
            names=np.array(self._names, np.int32),
            media=np.array(self._media, np.uint8),
            states=np.array(self._states, np.uint8),
            rates=np.array(self._rates, np.int64),
            rdma=np.array(self._rdma, np.int32),
            distances=np.array(self._distances, np.uint8),
            firmware_lldp=np.array(self._firmware_lldp, np.uint8),
            subnets=np.array(self._subnets, np.int32),
            texts=tuple(self._texts),
        )


AnyT = TypeVar("AnyT", bound="np.generic[Any]")


def splice(column: NDArray[AnyT], span: tuple[int, int], own: NDArray[AnyT]) -> NDArray[AnyT]:
    """Return a column with other entries in a span; the very same where those are equal."""
    start, stop = span
    if np.array_equal(column[start:stop], own):
        return column
    return np.concatenate([column[:start], own.astype(column.dtype), column[stop:]])
