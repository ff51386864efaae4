"""Printed output: one document in the chosen format, tables, and a limited list of problems."""

from __future__ import annotations

import json

import click
import pytest
import yaml
from click.testing import CliRunner

from generator.cli.output import (
    MAX_MESSAGE,
    WIDE,
    list_nodes,
    print_document,
    print_problems,
    render_table,
    shorten_names,
    show_count,
)
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
