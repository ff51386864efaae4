"""Printed output: one document in the chosen format, tables, and a limited list of problems."""

from __future__ import annotations

import json
import sys

import click
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from generator.cli.output import (
    MAX_MESSAGE,
    WIDE,
    list_nodes,
    print_document,
    print_problems,
    render_table,
    render_text,
    shorten_names,
    show_count,
    wrap_pieces,
)
from runtime.options import suggest_names
from tests.ground.exit_rows import commands
from topology.model.errors import ParseError, show
from topology.model.name_ranges import expand_names

HOSTILE = "red\x1b[31m\u202e\n#1 {{ ]]"


def printed(document: object, output: str) -> str:
    @click.command()
    def command() -> None:
        print_document(document, output, text=lambda: "for people")

    return CliRunner().invoke(command).stdout


@pytest.mark.parametrize("document", [[], {}, {"name": HOSTILE}, [{"a": [1, None, True, 0.5]}]])
def test_it_prints_documents_that_parse_back_to_the_same_value(document: object) -> None:
    assert json.loads(printed(document, "json")) == document
    assert yaml.safe_load(printed(document, "yaml")) == document


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_it_prints_documents_without_terminal_escapes(output: str) -> None:
    text = printed({"name": HOSTILE}, output)
    assert text.isascii()
    assert "\x1b" not in text


def test_it_aligns_columns_without_trailing_blanks() -> None:
    assert render_table(("A", "LONG"), [("1", ""), ("three", "x")]).split("\n") == [
        "A      LONG",
        "1",
        "three  x",
    ]


@pytest.mark.parametrize(
    ("count", "ending"),
    [(1, "skipped: f: bad 0"), (20, "bad 19"), (21, "1 more"), (500, "480 more")],
)
def test_it_lists_the_first_problems_and_counts_the_rest(count: int, ending: str) -> None:
    @click.command()
    def command() -> None:
        print_problems([ParseError(f"bad {number}", source="f") for number in range(count)])

    ran = CliRunner().invoke(command)
    lines = ran.stderr.splitlines()
    assert ran.stdout == ""
    assert len(lines) == min(count, 21)
    assert lines[-1].endswith(ending)


def test_it_prints_a_hostile_problem_on_one_line_of_bounded_length() -> None:
    @click.command()
    def command() -> None:
        print_problems([ParseError(HOSTILE * 1000, source=HOSTILE)])

    text = CliRunner().invoke(command).stderr
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert len(text) < 10 * MAX_MESSAGE  # an escape is at most ten characters


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ([], ""),
        (["a", "b"], "a b"),
        (list("abcdef"), "a b c d e f"),
        (list("abcdefgh"), "a b c d e f +2"),
        (["\x1b"], "\\x1b"),
    ],
)
def test_it_shortens_lists_of_names(names: list[str], shown: str) -> None:
    assert shorten_names(names) == shown


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ([], ""),
        (["n01", "n02", "n03", "n07"], "n[01-03,07]"),
        (["n2", "n1"], "n[2,1]"),
        (["a,b", "c"], "a,b c"),
        (["n\x1b1", "n2"], "n\\x1b1 n2"),
    ],
)
def test_it_lists_nodes_as_ranges(names: list[str], shown: str) -> None:
    assert list_nodes(names, "text") == shown
    assert list_nodes(names, WIDE) == " ".join(map(show, names))


def test_it_cuts_long_ranges_and_wide_does_not() -> None:
    names = [f"n{at:04d}" for at in range(0, 1000, 2)]
    text = list_nodes(names, "text")
    shown, more = text.rsplit(" +", 1)
    assert len(text) <= 130
    assert list(expand_names(shown)) == names[: len(names) - int(more)]
    assert list_nodes(names, WIDE).split() == names
    assert list_nodes(["x" * 200, "x" * 201], "text").endswith(" +1")


@pytest.mark.parametrize(
    ("num", "noun", "shown"),
    [
        (0, "pod", "0 pods"),
        (1, "leaf", "1 leaf"),
        (2, "leaf", "2 leaves"),
        (2, "switch", "2 switches"),
        (1_000, "HCA", "1000 HCAs"),
        (3, "core2", "3 core2"),
    ],
)
def test_it_shows_a_count_with_the_right_form_of_its_noun(num: int, noun: str, shown: str) -> None:
    assert show_count(num, noun) == shown


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the columns of a terminal to which stdout goes."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return 50


LONG_NAMES = ["leaf-p01-g01-r1-4", "node-[0001-0004,0009-0012,0021,0023,0025]", "x" * 30]


@given(st.lists(st.sampled_from([*LONG_NAMES, "a", "to", "cable,"])), st.integers(1, 80))
def test_a_line_is_broken_at_a_blank_or_behind_a_comma_only(words: list[str], width: int) -> None:
    text = " ".join(words)
    lines = wrap_pieces(text, width, "  ")
    assert "".join(line.strip() for line in lines).replace(" ", "") == text.replace(" ", "")
    for line in lines[:-1]:
        assert line.endswith(",") or any(word.endswith(line.split()[-1]) for word in words)
    assert not any(line.lstrip().startswith("[") for line in lines)
    pieces = max(map(len, text.replace(",", ", ").split()), default=0)
    assert max(map(len, lines)) <= max(width, pieces + len("  "))


def test_a_table_on_a_terminal_keeps_names_whole(terminal: int) -> None:
    advice = "Check the cables and the transceivers between the two switches."
    rows = [("warning", LONG_NAMES[0], LONG_NAMES[1], advice)]
    shown = click.unstyle(render_table(("SEVERITY", "FROM", "NODES", "WHAT TO DO"), rows))
    lines = shown.splitlines()
    assert max(map(len, lines)) <= max(terminal, 65)
    for name in (LONG_NAMES[0], "warning", "node-[0001-0004,", "0009-0012,", "transceivers"):
        assert sum(name in line for line in lines) == 1


def test_only_a_column_with_blanks_gives_way(terminal: int) -> None:
    rows = [("missing-link", "Check the cables and the transceivers between the two.")]
    lines = click.unstyle(render_table(("FINDING", "WHAT TO DO"), rows)).splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["FINDING", "missing-link"]
    assert max(map(len, lines)) <= terminal


def test_a_severity_has_its_color_on_a_terminal_only(
    terminal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    del terminal
    table = (("SEVERITY", "NAME"), [("error", "error")])
    assert render_table(*table).count("\x1b[31m") == 1
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31m" not in render_table(*table)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert "\x1b" not in render_table(*table)


def test_a_paragraph_on_a_terminal_is_indented_where_it_goes_on(terminal: int) -> None:
    text = f"  nodes: {', '.join(['node-[0001-0004]'] * 4)}"
    lines = render_text(text).splitlines()
    assert lines == [
        "  nodes: node-[0001-0004], node-[0001-0004],",
        "    node-[0001-0004], node-[0001-0004]",
    ]
    assert max(map(len, lines)) <= terminal


def test_a_paragraph_in_a_pipe_is_one_line() -> None:
    text = "node-[0001-0004] " * 40
    assert render_text(text) == text


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        pytest.param("leaf-p99", "; did you mean leaf-p01-g01?", id="the beginning of a name"),
        pytest.param("spine-7", "; did you mean spine-1?", id="a name like it as a whole"),
        pytest.param("no-such", "", id="nothing like it"),
    ],
)
def test_an_unknown_name_gets_the_names(name: str, suggested: str) -> None:
    assert suggest_names(name, ["leaf-p01-g01", "spine-1"]) == suggested


@pytest.mark.parametrize(("path", "command"), list(commands()))
def test_a_wrong_choice_gets_the_nearest_one(path: str, command: click.Command) -> None:
    for param in command.params:
        if isinstance(param.type, click.Choice):
            right = max(map(str, param.type.choices), key=len)
            with pytest.raises(click.BadParameter) as error:
                param.type.convert(f"{right}x", param, None)
            assert f"did you mean {right}" in str(error.value), path
