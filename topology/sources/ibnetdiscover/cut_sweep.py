"""Finds out whether the dump of a sweep is cut: whether its end is missing. Pure.

`ibnetdiscover` prints every cable twice, once in the record of each end, and prints all switches
before all CAs. So a cable at one end only, whose other end has no record or is in the last record,
shows that the rest of the text is missing. A node that does not answer a sweep is in no record and
is no peer either, so a partial sweep is not taken for a cut one.

Source: infiniband-diags 44, ibnetdiscover.c, `dump_topology`; libibnetdisc, `link_ports`. None of
the collected whole dumps has such a cable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from topology.model.errors import CutInput, ParseError
from topology.model.facts import Device, DeviceKind
from topology.model.ids import Id

_TAIL_BYTES: Final = 1 << 16
"""More than the largest record."""
_HEAD: Final = re.compile(
    rb'^[ \t]*(?:Switch|Ca|Rt)[ \t]+[0-9]*[ \t]*"?[SHR]-(?P<guid>[0-9a-fA-F]{16})'
    rb"|^[ \t]*(?:SW|CA|RT)[ \t]+-?[0-9]+[ \t]+[0-9]+[ \t]+0x(?P<short_guid>[0-9a-fA-F]{1,16})\b",
    re.MULTILINE,
)
_ID_LINE: Final = re.compile(
    rb"^[ \t]*(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid)=", re.MULTILINE
)


_NUM_QUOTES: Final = 4
"""Of a port line: around the peer and around the description."""


class _Ending(NamedTuple):
    """The end of a dump."""

    guid: str
    """Of the node of the last record, empty if there is none."""
    is_within_record: bool
    """Whether id lines follow whose record is missing."""
    is_within_line: bool


class OneEndedCables(NamedTuple):
    """How many cables of a sweep have only one record."""

    num_ends: int
    """Ends of cables in all records."""
    num_unknown: int
    """Ends whose other device has no record."""
    num_missing: int
    """Ends whose other device is the last one in the text, which does not list the cable."""
    has_other_rate: bool
    """Whether the last device lists a cable with another rate than its other end does."""


class _SeenEnd(NamedTuple):
    """One end of a cable, as the record of this end reports it."""

    own: tuple[Id, ...]
    far: tuple[Id, ...]
    rate_bps: int | None
    device_ids: tuple[Id, ...]
    far_device_ids: tuple[Id, ...]


CountOneEnded = Callable[[str], OneEndedCables]
"""Returns the counts of a sweep, by the GUID of the last node in its text."""


def find_cut(
    raw: bytes,
    devices: Sequence[Device],
    *,
    errors: Iterable[ParseError] = (),
    count: CountOneEnded | None = None,
    source: str = "",
) -> ParseError | None:
    """Return the problem of a truncated dump of ibnetdiscover, or None if it looks complete.

    A dump without any cable may be complete, so its problem is not a `CutInput`. Cost: O(ports), or
    that of `count`.

    Args:
        raw: the dump.
        devices: the devices in it.
        errors: the problems found by its parser.
        count: a faster counter of one-ended cables that uses numpy; None counts them here.
        source: the name of the input in the problem.
    """
    ending = _find_ending(raw)
    last_line = raw.count(b"\n") + 1
    if ending.is_within_line and (
        _has_open_quote(raw) or any(error.line == last_line for error in errors)
    ):
        return _build_problem("its last line is incomplete", source)
    if ending.is_within_record:
        return _build_problem("its last record is incomplete", source)
    # Cheap test first: equal sums mean that both ends list each cable.
    if count is None and not ending.is_within_line and has_both_ends(devices):
        return None
    cables = count(ending.guid) if count else count_one_ended_cables(devices, ending.guid)
    return _judge_cables(cables, devices, ending, source)


def _judge_cables(
    cables: OneEndedCables, devices: Iterable[Device], ending: _Ending, source: str
) -> ParseError | None:
    if cables.num_unknown:
        text = f"{cables.num_unknown} cable{'s end' if cables.num_unknown > 1 else ' ends'}"
        return _build_problem(f"{text} at a device without a record", source)
    if cables.num_missing:
        return _build_problem("cables of its last record are missing", source)
    if ending.is_within_line and cables.has_other_rate:
        return _build_problem("its last line is incomplete", source)
    if cables.num_ends:
        return None
    if any(device.kind is DeviceKind.SWITCH for device in devices):
        return _build_problem("it has switches but no cable", source)
    # Not known to be cut, so it stops no plan: this is also what a port without a link shows.
    problem = "no cable: the sweep was made at a port without a link, or is cut"
    return ParseError(problem, source=source)


def _find_ending(raw: bytes) -> _Ending:
    """Return how a dump ends: the last node, and whether it stops inside a record or a line."""
    tail = raw[-_TAIL_BYTES:]
    heads = list(_HEAD.finditer(tail))
    last = heads[-1] if heads else None
    guid = (last["guid"] or last["short_guid"]).decode().lower().zfill(16) if last else ""
    rest = tail[last.end() :] if last else tail
    return _Ending(guid, _ID_LINE.search(rest) is not None, not raw.endswith(b"\n"))


def _has_open_quote(raw: bytes) -> bool:
    """Return whether the last line names a peer in quotes, but has no whole description."""
    line = raw[-_TAIL_BYTES:].rpartition(b"\n")[2].strip()
    return line.startswith(b"[") and 0 < line.count(b'"') < _NUM_QUOTES


def _build_problem(reason: str, source: str) -> CutInput:
    return CutInput(f"the sweep is cut: {reason}; sweep again", source=source)


def has_both_ends(devices: Iterable[Device]) -> bool:
    """Return whether there are cables and both records list each of them, as in a whole sweep.

    Compares one sum over all ends with the same sum over the ends read from their other side, so
    that it takes no memory. False may also mean that the two records spell a port differently.
    """
    total, num_ends = 0, 0
    for device in devices:
        for port in device.ports:
            for neighbor in port.neighbors:
                own, far = port.ids[:1], neighbor.port_ids[:1]
                total ^= hash((own, far)) ^ hash((far, own))
                num_ends += 1
    return num_ends > 0 and total == 0


def count_one_ended_cables(devices: Iterable[Device], last_guid: str) -> OneEndedCables:
    """Return how many cables have only one record. Cost: O(ports), without memory if it is none.

    Args:
        devices: all devices of a sweep.
        last_guid: GUID of the last device in the text.
    """
    known: set[Id] = set()
    ends: list[_SeenEnd] = []
    for device in devices:
        known.update(device.ids)
        for port in device.ports:
            known.update(port.ids)
            ends += (
                _SeenEnd(
                    port.ids, neighbor.port_ids, port.rate_bps, device.ids, neighbor.device_ids
                )
                for neighbor in port.neighbors
            )
    rates = {(own, far): end.rate_bps for end in ends for own in end.own for far in end.far}
    num_unknown = num_missing = 0
    has_other_rate = False
    for end in ends:
        pairs = [(far, own) for far in end.far for own in end.own if (far, own) in rates]
        if pairs and _has_guid(end.device_ids, last_guid):
            has_other_rate |= all(rates[pair] != end.rate_bps for pair in pairs)
        elif not pairs and known.isdisjoint(end.far_device_ids):
            num_unknown += 1
        elif not pairs:
            num_missing += _has_guid(end.far_device_ids, last_guid)
    return OneEndedCables(len(ends), num_unknown, num_missing, has_other_rate=has_other_rate)


def _has_guid(ids: Iterable[Id], guid: str) -> bool:
    return any(id_.value == guid for id_ in ids)
