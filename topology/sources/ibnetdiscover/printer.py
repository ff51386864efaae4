"""Prints the rows of a sweep in the format of `ibnetdiscover`; equal facts give equal text.

The reverse of the parser, sorted by GUID, without dates, comments and LIDs, which change while the
fabric does not. Ports without a link, and CAs known by port GUID only, follow as rows of -p, which
records cannot express. Needs no numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from topology.sources.ibnetdiscover.rows import (
    LOWER_CASE,
    NO_GUID,
    RATES,
    PortLine,
    SweepRows,
)
from topology.sources.infiniband.link_rates import RATES_BPS
from topology.sources.infiniband.node_names import AGGREGATION_DEVID

_HEADS: Final = {"S": ("Switch", "switchguid"), "H": ("Ca", "caguid"), "R": ("Rt", "rtguid")}
_WORDS: Final = {"S": "SW", "H": "CA", "R": "RT"}
_TOKENS: Final = {rate: token for token, rate in reversed(RATES_BPS.items())}
"""The token of a rate; 40 Gb/s has three, and the first in `RATES_BPS` counts."""


def print_rows(rows: SweepRows) -> str:
    """Return a text that the parser reads to the same rows, sorted. Cost: O(rows), 2 µs each."""
    return "\n".join(_SweepPrinter(rows).lines())


class _SweepPrinter:
    def __init__(self, rows: SweepRows) -> None:
        self._rows = rows
        self._texts = [text.decode("utf-8", "replace") for text in rows.descriptions]
        self._lines_of: list[list[int]] = [[] for _ in rows.guids]
        for line, node in enumerate(rows.nodes):
            self._lines_of[node].append(line)
        for lines in self._lines_of:
            lines.sort(key=rows.numbers.__getitem__)

    def lines(self) -> Iterator[str]:
        rows = self._rows
        ordered = sorted(
            range(len(rows.guids)), key=lambda node: (rows.guids[node], rows.letters[node])
        )
        for node in ordered:
            if not rows.letters[node] & LOWER_CASE:
                yield from self._record(node)
        for node in ordered:
            yield from self._port_rows(node)

    def _port_lines(self, node: int) -> Iterator[PortLine]:
        return map(self._rows.line_at, self._lines_of[node])

    def _record(self, node: int) -> Iterator[str]:
        rows, letter = self._rows, chr(self._rows.letters[node])
        head, guid_word = _HEADS[letter]
        if rows.device_ids[node] == AGGREGATION_DEVID:
            yield f"devid={AGGREGATION_DEVID:#x}"
        if rows.images[node] != NO_GUID:
            yield f"sysimgguid={rows.images[node]:#x}"
        yield f"{guid_word}={rows.guids[node]:#x}"
        ports = [
            self._port_line(line, letter)
            for line in self._port_lines(node)
            if line.peer_letter != NO_GUID and not line.peer_letter & LOWER_CASE
        ]
        text = self._texts[rows.texts[node]]
        tail = " base port 0 lid 0 lmc 0" if letter == "S" else ""
        yield f'{head}\t{len(ports)} "{letter}-{rows.guids[node]:016x}"\t\t# "{text}"{tail}'
        yield from ports
        yield ""

    def _port_line(self, line: PortLine, letter: str) -> str:
        own = f"({line.own_guid:x}) " if line.own_guid else ""
        far = f"({line.far_guid:x}) " if line.far_guid else ""
        local = "lid 0 lmc 0 " if letter != "S" else ""
        rate = _TOKENS.get(RATES[line.rate] or 0, "")
        return (
            f'[{line.number}]{own}\t"{chr(line.peer_letter)}-{line.peer:016x}"[{line.far_number}]'
            f'{far}\t\t# {local}"{self._texts[line.text]}" lid 0 {rate}'.rstrip()
        )

    def _port_rows(self, node: int) -> Iterator[str]:
        """Yield a row of -p for each port that a record cannot express."""
        rows, letter = self._rows, self._rows.letters[node]
        text = self._texts[rows.texts[node]]
        for line in self._port_lines(node):
            start = f"{_word(letter)} 0 {line.number} 0x{rows.guids[node]:016x}"
            if line.peer_letter == NO_GUID:
                yield f"{start} ?? ??? '{text}'"
            elif (letter | line.peer_letter) & LOWER_CASE:
                far = f"{_word(line.peer_letter)} 0 {line.far_number} 0x{line.peer:016x}"
                yield (
                    f"{start} {_row_rate(line.rate)} - {far} "
                    f"( '{text}' - '{self._texts[line.text]}' )"
                )


def _word(letter: int) -> str:
    return _WORDS[chr(letter & ~LOWER_CASE)]


def _row_rate(rate: int) -> str:
    width, separator, speed = _TOKENS.get(RATES[rate] or 0, "").partition("x")
    return f"{width}x {speed}" if separator else "?? ???"
