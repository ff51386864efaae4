"""`toponaut findings`: what is wrong with the cabling, with evidence and advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from generator.exits import Exit
from generator.inputs import input_options, sources_of
from generator.printing import output_option, print_document, table
from generator.reading import finish, read_observation
from topology.errors import show
from topology.facts import Finding, FindingKind, Severity, render_finding

_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


@click.command(name="findings")
@input_options
@click.option(
    "--kind",
    multiple=True,
    type=click.Choice([kind.value for kind in FindingKind]),
    help="Only findings of this kind; repeatable.",
)
@click.option("--check", is_flag=True, help="Exit with 5 when there are warnings or errors.")
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: str,
    kind: tuple[str, ...],
    *,
    check: bool,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Print what contradicts itself, is missing, or sits in the wrong port."""
    read = read_observation(sources_of(options))
    found = [finding for finding in read.observation.findings if not kind or finding.kind in kind]
    print_document([render_finding(one) for one in found], output, text=lambda: _text(found))
    if check and any(finding.severity is not Severity.INFO for finding in found):
        finish(ctx, read.problems, Exit.CHECK_FAILED)
    finish(ctx, read.problems)


def _text(findings: Sequence[Finding]) -> str:
    if not findings:
        return "no findings"
    ordered = sorted(findings, key=lambda one: _RANK[one.severity])
    rows = [
        (one.severity.value, one.kind.value, show(_subject(one)), show(one.message, 600))
        for one in ordered
    ]
    counts = Counter(one.severity.value for one in findings)
    total = ", ".join(f"{counts[one.value]} {one.value}" for one in _RANK if counts[one.value])
    return f"{table(('SEVERITY', 'KIND', 'SUBJECT', 'WHAT TO DO'), rows)}\n{total}"


def _subject(finding: Finding) -> str:
    return f"{finding.device} port {finding.port}" if finding.port else finding.device
