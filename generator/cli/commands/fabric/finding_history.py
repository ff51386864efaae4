"""`toponaut findings --since`: which findings are new, lasting and gone since a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

import click

from generator.cli.commands.fabric.finding_text import render_findings_text
from generator.cli.history_access import find_generation_since, open_given_history, show_time
from generator.cli.output import show_count
from generator.history.finding_changes import FindingAge, FindingChanges, compare_findings
from topology.findings.silences import SilenceSplit
from topology.model.facts import Finding, render_finding
from topology.model.tree import all_nodes


class PastFindings(NamedTuple):
    """The findings of an earlier time, and those of the last record."""

    since_s: int
    before: tuple[Finding, ...]
    last: tuple[Finding, ...]
    hosts: frozenset[str]
    """The nodes of both times."""


def read_past_findings(since: datetime, options: dict[str, Any]) -> PastFindings:
    """Remove the options of the history from the parameters, and return what it contains.

    Raises:
        click.UsageError: the options name no history.
        StoreError: the history begins later, or cannot be read.
    """
    since_s = int(since.timestamp())
    with open_given_history(options.pop("store"), options.pop("history")) as history:
        trees = [find_generation_since(history, since), *history.read_generations(limit=1)]
        hosts = frozenset(chain.from_iterable(all_nodes(row.tree) for row in trees))
        return PastFindings(since_s, history.read_findings(since_s), history.read_findings(), hosts)


def refuse_without_since(options: dict[str, Any]) -> None:
    """Remove the options that need `--since` from the parameters.

    Raises:
        click.UsageError: one of them is given.
    """
    given = [key for key in ("store", "history", "age") if options.pop(key)]
    if given:
        raise click.UsageError(f"--{given[0]} applies to --since only")


def choose_ages(
    past: PastFindings, now: Iterable[Finding], ages: Iterable[str]
) -> dict[FindingAge, tuple[Finding, ...]]:
    """Return the findings of each chosen age, or of all ages."""
    changes: FindingChanges = compare_findings(past.before, now)
    chosen = tuple(map(FindingAge, ages)) or tuple(FindingAge)
    return {age: changes.of(age) for age in FindingAge if age in chosen}


def render_aged(
    by_age: dict[FindingAge, SilenceSplit[Finding]],
    render_silenced: Callable[[Any], dict[str, Any]],
) -> list[dict[str, Any]]:
    """Return the findings as `-o json` prints them, each with its age."""
    return [
        {**row, "age": age.value}
        for age, split in by_age.items()
        for row in (*map(render_finding, split.active), *map(render_silenced, split.silenced))
    ]


def render_aged_text(
    by_age: dict[FindingAge, SilenceSplit[Finding]], past: PastFindings, output: str
) -> str:
    """Return a section for each age, and the totals."""
    return "\n".join(_list_sections(by_age, past, output))


def _list_sections(
    by_age: dict[FindingAge, SilenceSplit[Finding]], past: PastFindings, output: str
) -> Iterator[str]:
    for age, split in by_age.items():
        num = len(split.active) + len(split.silenced)
        yield f"{age.value} since {show_time(past.since_s)}: {show_count(num, 'finding')}"
        if num:
            yield render_findings_text(split, output, past.hosts)
            yield ""
