"""A fabric as arrays, so that the inference needs no object for each port and link.

Each array has one entry per device, port or link, in the order of the fabric's rows. Ids are only
in the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.model.facts import DeviceKind, GpuDistance, Medium, PortState
from topology.model.lazy_rows import LazyRows

Index: TypeAlias = NDArray[np.intp]
Codes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Rates: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.int32]

KINDS: Final = tuple(DeviceKind)
MEDIA: Final = tuple(Medium)
STATES: Final = tuple(PortState)
DISTANCES: Final[tuple[GpuDistance | None, ...]] = (None, *GpuDistance)
KIND_CODES: Final = {kind: code for code, kind in enumerate(KINDS)}
MEDIUM_CODES: Final = {medium: code for code, medium in enumerate(MEDIA)}
STATE_CODES: Final = {state: code for code, state in enumerate(STATES)}
DISTANCE_CODES: Final = {distance: code for code, distance in enumerate(DISTANCES)}
UNKNOWN_RATE: Final = -1


class LinkColumns(NamedTuple):
    """The arrays of links, one entry per link."""

    a: Index
    """The lower port."""
    b: Index
    is_one_sided: Flags
    is_disputed: Flags
    rates: Rates
    """The lower of the rates that the two ends report."""


class NameCodes(NamedTuple):
    """The names of ports as codes; ports of one rail share few distinct names."""

    codes: Index
    """One entry per port: the index of its name in `texts`."""
    texts: Sequence[str]
    """Distinct names."""


class PortNames(LazyRows[str]):
    """Names of ports, built on demand; `code` builds each distinct name only once."""

    def __init__(
        self,
        size: int,
        make: Callable[[Sequence[int]], Iterator[str]],
        code: Callable[[Index], NameCodes],
    ) -> None:
        """Store the functions that build names.

        Args:
            size: the number of ports.
            make: the same argument as in `LazyRows`.
            code: returns the names of the given ports as codes.
        """
        super().__init__(size, make)
        self.code: Final = code


class FabricColumns(NamedTuple):
    """The arrays of a fabric; codes are indices into KINDS, MEDIA, STATES and DISTANCES."""

    names: Sequence[str]
    """Per device, as are the next two columns."""
    nodes: Sequence[str | None]
    kinds: Codes
    port_devices: Index
    """Per port, as are the next six columns."""
    port_names: PortNames
    media: Codes
    states: Codes
    rates: Rates
    """Bits per second; UNKNOWN_RATE if unknown."""
    distances: Codes
    """The distance to the nearest GPU; 0 if unknown."""
    roce_devices: Numbers
    """A number for the name of an Ethernet port's RDMA device; 0 if none is known."""
    links: LinkColumns
    has_shared_image: Flags
    """Per device, whether another device has the same system image GUID."""


def rate_or_none(rate: int) -> int | None:
    """Return a rate of a column as the rows hold it: None if unknown."""
    return None if rate == UNKNOWN_RATE else rate


def rate_column(rates: Sequence[int | None]) -> Rates:
    """Return the rates of rows as a column."""
    return np.array([UNKNOWN_RATE if rate is None else rate for rate in rates], np.int64)
