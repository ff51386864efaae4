"""Cabling plans as CSV tables: a table of four columns, and the cable list of NetBox.

Sources: NetBox 2.10 to 4.4, dcim/tables/cables.py for the exported list (the column titles) and
dcim/forms/bulk_import.py for the bulk import.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from topology.model.cabling_plan import PlannedCable
from topology.model.errors import ParseError

_COLUMNS: Final = {
    "csv": ("device a", "port a", "device b", "port b"),
    "netbox-csv": ("device a", "termination a", "device b", "termination b"),
    "netbox-csv of 3.2 and older": ("side a", "termination a", "side b", "termination b"),
    "netbox-csv for import": ("side a device", "side a name", "side b device", "side b name"),
}
_TYPES: Final = ("side a type", "side b type")
_NETWORK_TYPES: Final = frozenset({"dcim.interface", ""})
_PANEL_TYPES: Final = frozenset({"dcim.frontport", "dcim.rearport"})
_SAFE_STARTS: Final = ("'=", "'+", "'-", "'@")
"""What the CSV of Toponaut and of other tools begins with for a name that would be a formula."""
_MAX_COLUMNS: Final = 1000
"""NetBox exports about twenty."""
_DELIMITERS: Final = (",", ";", "\t")
_MAX_LINES: Final = 64
"""Lines of one record: NetBox exports comments, which may contain line breaks."""
BREAKOUT_PROBLEM: Final = (
    "several ports on one side, like a breakout cable: write one line per port"
)
PANEL_PROBLEM: Final = "ends at a patch panel: write the cable from device to device"


class _Layout(NamedTuple):
    form: str
    delimiter: str
    ends: tuple[int, ...]
    """Indexes of the columns device, port, device, port."""
    types: tuple[int, ...]
    """Indexes of the columns with the type of an end; empty in most forms."""
    status: int | None
    """Index of the status column, None without one."""
    first: int
    """Index of the line after the header."""


def detect_table_form(lines: Sequence[str]) -> str:
    """Return the form of a table by its header; empty if the header is unknown."""
    layout = _find_layout(lines)
    return layout.form if layout else ""


def _find_layout(lines: Sequence[str]) -> _Layout | None:
    """Return the columns that the header names, None if it is unknown.

    The header is the first line that is neither blank nor a comment (`#`).
    """
    header_index = next(
        (k for k, line in enumerate(lines) if line.strip() and not _is_comment(line)), None
    )
    if header_index is None:
        return None
    for delimiter in _DELIMITERS:
        if lines[header_index].count(delimiter) > _MAX_COLUMNS:
            continue
        titles = [_title(cell) for cell in _split_cells([lines[header_index]], delimiter) or ()]
        for form, expected_columns in _COLUMNS.items():
            if set(expected_columns) <= set(titles):
                return _Layout(
                    form=form.partition(" ")[0],
                    delimiter=delimiter,
                    ends=tuple(map(titles.index, expected_columns)),
                    types=tuple(titles.index(title) for title in _TYPES if title in titles),
                    status=titles.index("status") if "status" in titles else None,
                    first=header_index + 1,
                )
    return None


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _title(cell: str) -> str:
    return re.sub(r"[\s_]+", " ", cell.strip().lower())


def _split_cells(lines: Sequence[str], delimiter: str) -> list[str] | None:
    """Return the cells of one record, None if the csv module refuses it."""
    text = [f"{line}\n" for line in lines]
    try:
        return next(csv.reader(text, delimiter=delimiter, strict=True), [])
    except csv.Error:
        return None


def parse_table(lines: Sequence[str]) -> Iterator[PlannedCable | ParseError]:
    """Yield a cable or an error per record.

    Skips cables that do not carry a network and cables with the status "decommissioning".
    """
    layout = _find_layout(lines)
    if layout is None:
        return
    line_index = layout.first
    while line_index < len(lines):
        if not lines[line_index].strip() or _is_comment(lines[line_index]):
            line_index += 1
            continue
        length = _record_length(lines, line_index)
        cells = _split_cells(lines[line_index : line_index + length], layout.delimiter)
        if (cells is None or len(cells) <= max(layout.ends)) and length > 1:
            length, cells = 1, None  # a stray quote must not swallow the lines after it
        row = _parse_record(cells, layout, line=line_index + 1, text=lines[line_index])
        if row is not None:
            yield row
        line_index += length


def _record_length(lines: Sequence[str], first_index: int) -> int:
    """Return the number of lines until the quotes are balanced; 1 if they never are."""
    quotes = 0
    for length, line in enumerate(lines[first_index : first_index + _MAX_LINES], 1):
        quotes += line.count('"')
        if quotes % 2 == 0:
            return length
    return 1


def _parse_record(
    cells: list[str] | None, layout: _Layout, *, line: int, text: str
) -> PlannedCable | ParseError | None:
    if cells is None or len(cells) <= max(layout.ends):
        expected = max(layout.ends) + 1
        return ParseError(f"expected {expected} columns or more", line=line, excerpt=text)
    types = {cells[column].strip() for column in layout.types if column < len(cells)}
    if types & _PANEL_TYPES:
        return ParseError(PANEL_PROBLEM, line=line, excerpt=text)
    if not types <= _NETWORK_TYPES or _is_decommissioned(cells, layout.status):
        return None
    device_a, port_a, device_b, port_b = (_read_name(cells[column]) for column in layout.ends)
    if layout.form != "csv" and any("," in port for port in (port_a, port_b)):
        return ParseError(BREAKOUT_PROBLEM, line=line, excerpt=text)
    return PlannedCable(device_a, port_a, device_b, port_b, line)


def _read_name(cell: str) -> str:
    """Return a name without the apostrophe that keeps a spreadsheet from running it."""
    name = cell.strip()
    return name[1:] if name.startswith(_SAFE_STARTS) else name


def _is_decommissioned(cells: Sequence[str], status: int | None) -> bool:
    """Whether the cable is about to be removed, so it may be present or absent."""
    return status is not None and status < len(cells) and is_decommissioning(cells[status])


def is_decommissioning(status: str) -> bool:
    """Whether a status of NetBox says that the cable is about to be removed."""
    return status.strip().lower() == "decommissioning"
