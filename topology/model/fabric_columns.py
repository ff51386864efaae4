"""A fabric as arrays: what the inference counts, without an object for each port and link.

One entry per device, port or link, in the order of the fabric's rows. Ids are in the rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.model.facts import DeviceKind, Medium, PortState
from topology.model.lazy_rows import LazyRows, rows_at

Index: TypeAlias = NDArray[np.intp]
Codes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Rates: TypeAlias = NDArray[np.int64]

KINDS: Final = tuple(DeviceKind)
MEDIA: Final = tuple(Medium)
STATES: Final = tuple(PortState)
KIND_CODES: Final = {kind: code for code, kind in enumerate(KINDS)}
MEDIUM_CODES: Final = {medium: code for code, medium in enumerate(MEDIA)}
STATE_CODES: Final = {state: code for code, state in enumerate(STATES)}
UNKNOWN_RATE: Final = -1


class LinkColumns(NamedTuple):
    """The arrays of links, one entry per link."""

    a: Index
    """The lower port."""
    b: Index
    is_one_sided: Flags
    is_disputed: Flags
    rates: Rates
    """The lower of what the two ends say."""


class NameCodes(NamedTuple):
    """Names of some ports: few different ones, as rails have."""

    codes: Index
    """One entry per port: the place of its name among the texts."""
    texts: Sequence[str]
    """Different ones."""


class PortNames(LazyRows[str]):
    """Names of ports that are made when somebody looks, each different one once for all."""

    def __init__(
        self,
        size: int,
        make: Callable[[Sequence[int]], Iterator[str]],
        code: Callable[[Index], NameCodes],
    ) -> None:
        """Keep how names are made.

        Args:
            size: how many ports there are.
            make: as for `LazyRows`.
            code: returns the names of the ports at some places.
        """
        super().__init__(size, make)
        self.code: Final = code


class FabricColumns(NamedTuple):
    """The arrays of a fabric; codes are indices into KINDS, MEDIA and STATES."""

    names: Sequence[str]
    """Per device, and so are the next two."""
    nodes: Sequence[str | None]
    kinds: Codes
    port_devices: Index
    """Per port, and so are the next five."""
    port_names: Sequence[str]
    """`PortNames` where there are many; see `name_codes`."""
    media: Codes
    states: Codes
    rates: Rates
    """Bits per second; UNKNOWN_RATE where nothing tells."""
    has_gpu_distance: Flags
    """Whether its distance to a GPU is told."""
    links: LinkColumns
    has_shared_image: Flags | None = None
    """Per device whether another one has the same system image; None where nobody looked."""


def name_codes(names: Sequence[str], places: Index) -> NameCodes:
    """Return the names at some places as codes, numbered in any order."""
    return (
        names.code(places)
        if isinstance(names, PortNames)
        else code_names(rows_at(names, places.tolist()))
    )


def code_names(names: Iterable[str]) -> NameCodes:
    """Return names as codes, numbered as they come."""
    known: dict[str, int] = {}
    codes = [known.setdefault(name, len(known)) for name in names]
    return NameCodes(np.array(codes, np.intp), list(known))


def rate_or_none(rate: int) -> int | None:
    """Return a rate of a column as rows have it."""
    return None if rate == UNKNOWN_RATE else rate


def rate_column(rates: Sequence[int | None]) -> Rates:
    """Return rates of rows as a column."""
    return np.array([UNKNOWN_RATE if rate is None else rate for rate in rates], np.int64)
