"""A part of the history that fits into one object of a cluster, so that it outlives a pod.

The backup has the newest generation of each minute of an hour, of each hour of a day and of each
day of a month, all findings that exist, and those that ended last. Successive trees are almost
equal, so they are compressed together: 60 trees of 10,000 hosts take 63 kB and 0.4 s. Pure, but
for the file that it reads.
"""

from __future__ import annotations

import json
import lzma
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple

from generator.history.findings import build_fault_key, decode_finding, encode_finding
from generator.history.history_file import FindingLife, Generation, open_history
from generator.history.retention import (
    DAY_S,
    HOUR_S,
    MINUTE_S,
    ROOM_BYTES,
    EndedFinding,
    choose_kept,
    compute_room,
    find_surplus_findings,
)
from topology.model.errors import ConfigError, show
from topology.model.facts import Finding
from topology.model.tree import parse_tree, render_tree

MAX_BYTES: Final = 700 << 10
"""The largest backup: a ConfigMap holds at most 1 MiB, and base64 adds a third."""
MAX_GENERATIONS: Final = 120
GONE_ROOM: Final = 20_000
"""Room for findings that ended."""
_MAX_RAW: Final = 64 << 20
"""Size of an unpacked backup."""
_FINDINGS_ROOM: Final = _MAX_RAW // 2 // ROOM_BYTES
"""Room for all findings: generations take the other half."""
_FORMAT: Final = 1
_SPANS: Final = ((HOUR_S, MINUTE_S), (DAY_S, HOUR_S), (31 * DAY_S, DAY_S))
_FILTERS: Final = ({"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 16 << 20},)
_MEMORY_BYTES: Final = 64 << 20


class Backup(NamedTuple):
    """A part of a history."""

    generations: tuple[Generation, ...] = ()
    """Newest first."""
    lives: tuple[FindingLife, ...] = ()
    """Findings that exist, then findings that ended, the last one first."""

    @property
    def begin_s(self) -> int | None:
        """The time of the oldest generation; None without one."""
        return self.generations[-1].at_s if self.generations else None


EMPTY: Final = Backup()


def read_backup(file: Path, now_s: int) -> Backup:
    """Return the generations and findings of a history that fit a backup.

    Raises:
        StoreError: the file cannot be read.
    """
    with open_history(file) as history:
        kept = choose_kept(history.read_times(), now_s, spans=_SPANS)[-MAX_GENERATIONS:]
        found = [history.find_generation(at_s) for at_s in reversed(kept)]
        generations = tuple(row for row in found if row is not None)
        return Backup(generations, history.read_lives(gone_room=GONE_ROOM))


def merge_backups(older: Backup, own: Backup) -> Backup:
    """Return the history of a pod; before it begins, that of its predecessors.

    A finding that the predecessors knew already keeps the time at which it began.
    """
    begin_s = own.begin_s
    if begin_s is None:
        return older
    before = [row for row in older.generations if row.at_s < begin_s]
    began = {
        build_fault_key(life.finding): life.began_s
        for life in older.lives
        if life.ended_s is None and life.began_s < begin_s
    }
    lives = []
    for life in own.lives:
        began_s = life.began_s
        if began_s <= begin_s:
            began_s = min(began_s, began.get(build_fault_key(life.finding), begin_s))
        lives.append(life._replace(began_s=began_s))
    gone = [life for life in older.lives if life.ended_s is not None and life.ended_s <= begin_s]
    known = {(build_fault_key(life.finding), life.ended_s) for life in lives}
    lives += [row for row in gone if (build_fault_key(row.finding), row.ended_s) not in known]
    generations = (*own.generations, *before)[:MAX_GENERATIONS]
    return Backup(generations, _choose_lives(lives, _FINDINGS_ROOM))


def pack_backup(backup: Backup) -> bytes:
    """Return a backup as bytes; the oldest generations and findings that do not fit are left out.

    Raises:
        ConfigError: not even the newest generation fits.
    """
    generations = _take_within(backup.generations)
    lives = _choose_lives(backup.lives, _FINDINGS_ROOM)
    while True:
        packed = _pack(generations, lives)
        if len(packed) <= MAX_BYTES:
            return packed
        if len(generations) == 1 and not lives:
            raise ConfigError(
                f"the history does not fit: one tree takes {len(packed)} bytes of {MAX_BYTES}"
            )
        if len(lives) >= len(generations):
            room = sum(compute_room(_count_bytes(life.finding)) for life in lives)
            lives = _choose_lives(lives, room // 2)
        else:
            generations = generations[: max(1, len(generations) // 2)]


def parse_backup(raw: bytes) -> Backup:
    """Return the backup of bytes that `pack_backup` wrote.

    Raises:
        ConfigError: they are no backup, or one of a later version.
    """
    text = _unpack(raw)
    try:
        document = json.loads(text)
        generations = [
            Generation(number, int(at_s), parse_tree(tree))
            for number, (at_s, tree) in enumerate(reversed(document["generations"]), 1)
        ]
        lives = [
            FindingLife(decode_finding(text), int(began_s), None if end is None else int(end))
            for text, began_s, end in document["findings"]
        ]
        version = document["format"]
    except (ConfigError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"not a history: {show(str(error))}") from error
    if version != _FORMAT:
        raise ConfigError(f"a history of version {show(str(version))}, which this program lacks")
    return Backup(tuple(reversed(generations)), tuple(lives))


def _unpack(raw: bytes) -> bytes:
    """Return the text of a backup.

    Raises:
        ConfigError: it is cut, or far larger than a backup.
    """
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY_BYTES)
    try:
        text = unpacker.decompress(raw, _MAX_RAW)
    except (lzma.LZMAError, EOFError) as error:
        raise ConfigError(f"not a history: {show(str(error))}") from error
    if not unpacker.eof:
        raise ConfigError("not a history: it is cut, or larger than a backup")
    return text


def _take_within(generations: Sequence[Generation]) -> Sequence[Generation]:
    """Return the newest generations whose text is small enough to be compressed and read."""
    left = _MAX_RAW // 2
    taken: list[Generation] = []
    for generation in generations:
        left -= len(json.dumps(render_tree(generation.tree)))
        if left < 0 and taken:
            break
        taken.append(generation)
    return taken


def _choose_lives(lives: Sequence[FindingLife], room: int) -> tuple[FindingLife, ...]:
    """Return the findings that exist by fault, then a share of those that ended, the last first."""
    present = sorted(
        (life for life in lives if life.ended_s is None),
        key=lambda life: build_fault_key(life.finding),
    )
    room_so_far = list(accumulate(compute_room(_count_bytes(life.finding)) for life in present))
    present_room = room_so_far[-1] if room_so_far else 0
    gone = [life for life in lives if life.ended_s is not None]
    ended = [
        EndedFinding(life.finding.device, life.ended_s or 0, _count_bytes(life.finding))
        for life in gone
    ]
    gone_room = min(GONE_ROOM, max(0, room - present_room))
    dropped = set(find_surplus_findings(ended, gone_room))
    kept = [life for index, life in enumerate(gone) if index not in dropped]
    kept.sort(key=lambda life: -(life.ended_s or 0))
    return (*present[: bisect_right(room_so_far, room)], *kept)


def _count_bytes(finding: Finding) -> int:
    return len(build_fault_key(finding).encode()) + len(encode_finding(finding))


def _pack(generations: Sequence[Generation], lives: Sequence[FindingLife]) -> bytes:
    document: dict[str, Any] = {
        "format": _FORMAT,
        "generations": [[row.at_s, render_tree(row.tree)] for row in generations],
        "findings": [[encode_finding(life.finding), life.began_s, life.ended_s] for life in lives],
    }
    text = json.dumps(document, separators=(",", ":")).encode()
    return lzma.compress(text, format=lzma.FORMAT_XZ, filters=[*_FILTERS])
