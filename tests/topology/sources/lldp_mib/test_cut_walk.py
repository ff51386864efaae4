"""Walks that are cut after each of their lines: named as cut, or a whole walk of fewer tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from topology.model.facts import Device, Medium
from topology.sources.lldp_mib.tables import IF_ENTRY, IFX_ENTRY, LLDP, LLDP_V2, Oid, WalkRow
from topology.sources.lldp_mib.walk import find_cut_walk, parse_walk

NUM_PORTS = 4
LOCAL, REMOTE = (3, 7, 1), (4, 1, 1)
REMOTE_COLUMNS = (4, 5, 6, 7, 9, 12)


def table(base: Oid, columns: tuple[int, ...], *, index: Oid = ()) -> Iterator[WalkRow]:
    """Yield a table as a walk does: column by column."""
    for column in columns:
        for port in range(1, NUM_PORTS + 1):
            row = (*base, column, port) if not index else (*base, column, 0, port, *index)
            yield row, cell(base, column, port)


def cell(base: Oid, column: int, port: int) -> bytes | int:
    if base in ((*LLDP, *REMOTE), (*LLDP_V2, *REMOTE)):
        column -= base[:4] == LLDP_V2[:4]
        kinds: dict[int, bytes | int] = {
            4: 4,
            6: 5,
            5: bytes((2, 0, 0, 0, 9, port)),
            12: b"\x28\x00",
        }
        return kinds.get(column, b"swp%d" % port)
    if base in (IF_ENTRY, IFX_ENTRY):
        return 6 if column in {3, 8} else b"swp%d" % port
    return 5 if column == 2 else b"swp%d" % port


TABLES = {
    "interfaces": lambda: table(IF_ENTRY, (1, 2, 3, 8)),
    "names of interfaces": lambda: table(IFX_ENTRY, (1, 18)),
    "local ports": lambda: table((*LLDP, *LOCAL), (2, 3, 4)),
    "neighbors": lambda: table((*LLDP, *REMOTE), REMOTE_COLUMNS, index=(1,)),
    "neighbors of lldpV2": lambda: table(
        (*LLDP_V2, *REMOTE), tuple(column + 1 for column in REMOTE_COLUMNS), index=(1, 1)
    ),
}
LAST_MANDATORY = {"local ports": 3, "neighbors": 7, "neighbors of lldpV2": 8}


def walk_of(*names: str) -> list[WalkRow]:
    return [row for name in names for row in TABLES[name]()]


def links_of(device: Device | None) -> set[tuple[str, str]]:
    """Return which port hears what."""
    ports = device.ports if device else ()
    return {
        (port.name, neighbor.port_name or neighbor.device_ids[0].value)
        for port in ports
        if port.medium is Medium.ETHERNET
        for neighbor in port.neighbors
    }


@pytest.mark.parametrize("name", TABLES)
def test_it_names_every_cut_within_a_column_and_before_the_last_mandatory_one(name: str) -> None:
    rows = walk_of(name)
    base = next(base for base in BASES if rows[0][0][: len(base)] == base)
    columns = [oid[len(base)] for oid, _ in rows]
    for end in range(NUM_PORTS + 1, len(rows)):
        is_column_whole = end % NUM_PORTS == 0
        is_enough = columns[end - 1] >= LAST_MANDATORY.get(name, 0)
        is_silent = is_column_whole and is_enough
        assert (find_cut_walk(rows[:end]) == "") is is_silent, (end, columns[end - 1])


BASES = (*((*LLDP, *LOCAL), (*LLDP, *REMOTE), (*LLDP_V2, *REMOTE), IF_ENTRY, IFX_ENTRY),)


@pytest.mark.parametrize("name", TABLES)
def test_a_cut_says_which_column_lacks_how_many_rows(name: str) -> None:
    rows = walk_of(name)
    column = rows[NUM_PORTS][0][-2 if name not in {"neighbors", "neighbors of lldpV2"} else 0]
    found = find_cut_walk(rows[: NUM_PORTS + 1])
    assert found.endswith("of its last table has 1 rows of 4")
    assert name.startswith("neighbors") or found.startswith(f"column {column} ")


@pytest.mark.parametrize("name", TABLES)
def test_a_whole_walk_of_any_tables_is_not_cut(name: str) -> None:
    assert find_cut_walk(walk_of(name)) == ""
    assert find_cut_walk(walk_of("interfaces", "local ports", name)) == ""


@pytest.mark.parametrize("name", ["neighbors", "neighbors of lldpV2"])
def test_a_cut_that_does_not_show_costs_no_link(name: str) -> None:
    rows = walk_of("interfaces", "local ports", name)
    whole, _ = parse_walk(rows)
    for end in range(len(rows)):
        if find_cut_walk(rows[:end]) == "":
            device, _ = parse_walk(rows[:end])
            found = links_of(device)
            is_in_table = rows[end - 1][0][: len(LLDP)] == LLDP or "V2" in name
            assert not found or (found == links_of(whole) and is_in_table), end


def test_rows_in_another_order_are_not_called_cut() -> None:
    rows = walk_of("local ports")
    assert find_cut_walk(sorted(rows, key=lambda row: row[0][-1])[:-1]) == ""
    assert find_cut_walk(rows[::-1][:-1]) == ""


def test_a_column_of_other_ports_is_no_cut_one() -> None:
    sparse: list[WalkRow] = [((*IFX_ENTRY, 18, 3), b"uplink")]
    assert find_cut_walk([*walk_of("names of interfaces")[:NUM_PORTS], *sparse]) == ""


def test_nothing_is_not_cut() -> None:
    assert find_cut_walk([]) == ""
    assert find_cut_walk([((1, 3, 6, 1, 2, 1, 1, 5, 0), b"leaf")]) == ""
