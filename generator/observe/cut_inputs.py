"""What may be concluded from inputs whose end is missing: `cut-input` instead of blame. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from topology.model.errors import CutInput, show
from topology.model.facts import Finding, FindingKind, Severity

_NEEDS_WHOLE_INPUT: Final = frozenset(
    {
        FindingKind.ONE_SIDED_LINK,
        FindingKind.SWAPPED_CABLE,
        FindingKind.WRONG_RAIL,
        FindingKind.LOST_SWITCH,
        FindingKind.MISSING_LINK,
        FindingKind.SLOW_LINK,
        FindingKind.DOWN_PORT,
        FindingKind.HOST_ON_SPINE,
        FindingKind.AUX_SWITCH,
        FindingKind.UNRESOLVED_HOST,
        FindingKind.UNDECIDABLE,
        FindingKind.NEAR_TIE,
        FindingKind.ISLAND,
        FindingKind.NOT_A_TREE,
        FindingKind.TIER_MISMATCH,
        FindingKind.GUESSED_KIND,
    }
)
"""Kinds that compare peers or need both ends of a cable, so that a cut shows cables to be at fault
that are merely absent from the input."""


def withhold_findings(findings: Iterable[Finding], cuts: Sequence[CutInput]) -> Iterator[Finding]:
    """Yield a finding per cut input, and of the others those that do not need a whole input."""
    yield from (finding for finding in findings if finding.kind not in _NEEDS_WHOLE_INPUT)
    for cut in cuts:
        yield Finding(
            kind=FindingKind.CUT_INPUT,
            device=show(cut.source.rpartition("/")[2], 253) or "input",
            port=None,
            severity=Severity.ERROR,
            message=(
                f"The end of this input is missing: {cut.problem}. Nothing is planned from it, and "
                "findings about cables are withheld. Give the whole input."
            ),
        )


def describe_cuts(cuts: Sequence[CutInput]) -> Iterator[str]:
    """Yield why nothing may be planned from each cut input."""
    return (f"{show(cut.source, 253)}: {cut.problem}" for cut in cuts)
