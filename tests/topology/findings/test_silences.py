"""Silences: which rows they match, until when, and which files are valid."""

from datetime import date
from typing import Any

import pytest

from topology.findings.silences import (
    Silence,
    SilenceSubject,
    parse_silences,
    render_silence,
    split_silenced,
)
from topology.model.errors import ConfigError
from topology.model.facts import PortName

TODAY = date(2027, 1, 31)
ENTRY = {
    "kind": "missing",
    "device": "leaf1",
    "port": "swp1",
    "reason": "waits for a transceiver",
    "until": "2027-02-28",
}
KINDS = ("missing", "swapped")


def entry(**changes: object) -> dict[str, Any]:
    """Return an entry with some fields changed; a field set to None is left out."""
    return {key: value for key, value in (ENTRY | changes).items() if value is not None}


def silence(**changes: object) -> Silence:
    return parse_silences([entry(**changes)], kinds=KINDS)[0]


ROWS = (
    SilenceSubject("missing", [PortName("leaf1", "swp1"), PortName("node1", "eth0")]),
    SilenceSubject("missing", [PortName("leaf1", "swp2"), PortName("node2", "eth0")]),
    SilenceSubject("swapped", [PortName("leaf1", "swp1")]),
    SilenceSubject("missing", [PortName("leaf2", "")]),
)


@pytest.mark.parametrize(
    ("changes", "silenced"),
    [
        pytest.param({}, [0], id="one port of one kind"),
        pytest.param({"port": None}, [0, 1], id="a whole device"),
        pytest.param({"device": "LEAF1.example.com"}, [0], id="a device by its long name"),
        pytest.param({"device": "node2", "port": "eth0"}, [1], id="a row by its other end"),
        pytest.param({"kind": "swapped"}, [2], id="another kind of the same port"),
        pytest.param({"port": "SWP1"}, [], id="no port in another spelling"),
        pytest.param({"device": "leaf2", "port": None}, [3], id="a row about a device"),
        pytest.param({"device": "leaf2"}, [], id="no device where a port is named"),
        pytest.param({"until": "2027-01-31"}, [0], id="rows on its last day"),
        pytest.param({"until": "2027-01-30"}, [], id="nothing on the day after"),
    ],
)
def test_it_silences(changes: dict[str, object], silenced: list[int]) -> None:
    split = split_silenced(ROWS, [silence(**changes)], today=TODAY, subject=lambda row: row)
    assert [ROWS.index(silenced_row.row) for silenced_row in split.silenced] == silenced
    assert [ROWS.index(row) for row in split.active] == [
        row_index for row_index in range(len(ROWS)) if row_index not in silenced
    ]


def test_a_silence_of_one_domain_says_nothing_about_another() -> None:
    rows = [SilenceSubject("missing", [PortName(f"leaf1.{at}", "swp1")]) for at in ("a", "b")]
    split = split_silenced(rows, [silence(device="leaf1.a")], today=TODAY, subject=lambda row: row)
    assert [found.row for found in split.silenced] == rows[:1]


def test_it_gives_the_reason_of_the_first_silence_that_matches() -> None:
    silences = [silence(reason="old", until="2026-01-01"), silence(reason="a"), silence(reason="b")]
    split = split_silenced(ROWS[:1], silences, today=TODAY, subject=lambda row: row)
    assert [row.silence.reason for row in split.silenced] == ["a"]
    assert [row.reason for row in split.expired] == ["old"]


def test_it_reports_an_expired_silence_that_matches_nothing() -> None:
    old = silence(device="gone", until="2026-01-01")
    assert split_silenced(ROWS, [old], today=TODAY, subject=lambda row: row).expired == (old,)


def test_it_reads_a_list_alone_or_under_its_name() -> None:
    expected = (silence(),)
    assert parse_silences([ENTRY], kinds=KINDS) == expected
    assert parse_silences({"silences": [ENTRY]}, kinds=KINDS) == expected
    assert parse_silences([], kinds=KINDS) == ()


def test_it_reads_a_port_that_is_a_number() -> None:
    assert silence(port=17).port == "17"


def test_it_renders_a_silence_as_it_was_written() -> None:
    assert render_silence(silence()) == ENTRY
    assert render_silence(silence(port=None)) == ENTRY | {"port": None}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param("x", "expected a list", id="text"),
        pytest.param({"silence": []}, "expected a list", id="another name"),
        pytest.param([7], "silence 1: expected an object", id="a number"),
        pytest.param([entry(reason=None)], "reason is missing", id="no reason"),
        pytest.param([entry(reason="  ")], "reason is missing", id="an empty reason"),
        pytest.param([entry(until=None)], "until is missing", id="no end"),
        pytest.param([entry(device=None)], "device is missing", id="no device"),
        pytest.param([entry(port=["a"])], "port is missing or not a text", id="a list of ports"),
        pytest.param(
            [ENTRY, entry(until="soon")], "silence 2: until 'soon'", id="a word instead of a day"
        ),
        pytest.param([entry(until="2027-02-30")], "not a date", id="a day that does not exist"),
        pytest.param([entry(kind="mising")], "not one of missing, swapped", id="an unknown kind"),
        pytest.param([entry(untill="x")], "'untill' is not one of", id="a key that is misspelt"),
    ],
)
def test_it_refuses(document: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_silences(document, kinds=KINDS)
