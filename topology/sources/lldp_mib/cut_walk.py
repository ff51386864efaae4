"""Finds out whether a saved walk is cut: whether its last table lacks rows of a column. Pure.

A walk prints a table column by column, each with the same rows. So a cut within a table shows: its
last column ends early, or a column that every agent has is missing. A cut between two tables does
not show.

Source: IEEE 802.1AB 11.5 (columns that are mandatory), RFC 2863.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from topology.sources.lldp_mib.tables import IF_ENTRY, IFX_ENTRY, LLDP, LLDP_V2, Oid, WalkRow

_LOCAL_PORTS: Final[Oid] = (3, 7, 1)
_REMOTE: Final[Oid] = (4, 1, 1)
_LAST_MANDATORY: Final[Mapping[Oid, int]] = {
    (*LLDP, *_LOCAL_PORTS): 3,
    (*LLDP, *_REMOTE): 7,
    (*LLDP_V2, *_LOCAL_PORTS): 3,
    (*LLDP_V2, *_REMOTE): 8,
    IF_ENTRY: 0,
    IFX_ENTRY: 0,
}
"""The last column that every agent has, by table; 0: agents differ.

LLDP-V2-MIB has one more index, `lldpV2RemLocalDestMACAddress`, which moves no column that is read
here but the last one.
"""


def find_cut_walk(rows: Sequence[WalkRow]) -> str:
    """Return why the end of a walk is missing, empty if it looks whole. Cost: O(rows).

    Args:
        rows: in the order of the file.
    """
    last = rows[-1][0] if rows else ()
    table = next((entry for entry in _LAST_MANDATORY if last[: len(entry)] == entry), None)
    if table is None or len(last) <= len(table) + 1:
        return ""
    columns: dict[int, list[Oid]] = {}
    for oid, _ in rows:
        if oid[: len(table)] == table and len(oid) > len(table) + 1:
            columns.setdefault(oid[len(table)], []).append(oid[len(table) + 1 :])
    column = last[len(table)]
    if list(columns)[-1] != column or column != max(columns):
        return ""  # not in the order of a walk
    indexes = columns.pop(column)
    longest = max(columns.values(), key=len, default=[])
    if len(indexes) < len(longest) and indexes == longest[: len(indexes)]:
        return f"column {column} of its last table has {len(indexes)} rows of {len(longest)}"
    if columns and column < _LAST_MANDATORY[table]:
        return f"its last table ends with column {column}"
    return ""
