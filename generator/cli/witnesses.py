"""How the domains of labels or HyperNodes differ from the cables, as rows."""

from __future__ import annotations

from typing import Final

from generator.cli.output import Table, show_count
from generator.observe.domain_witness import Witness, WitnessDiff, WitnessKind, WitnessRow
from topology.model.errors import show

_MESSAGE_CHARS: Final = 600


def render_witness_rows(diff: WitnessDiff, against: Witness) -> list[dict[str, str]]:
    """Return the differences as JSON."""
    return [
        {
            "kind": row.kind.value,
            "node": row.node,
            "tier": row.tier,
            "witness": row.witness,
            "witnessMost": row.witness_most,
            "cables": row.cables,
            "cablesMost": row.cables_most,
            "message": _describe(row, against),
        }
        for row in diff.rows
    ]


def build_witness_table(diff: WitnessDiff, against: Witness) -> Table:
    """Return a row per difference, and how many nodes agree."""
    others = len({row.node for row in diff.rows if row.kind is not WitnessKind.OTHER_TIER})
    total = f"{show_count(diff.num_agreed, 'node')} placed as by the {against}, {others} otherwise"
    rows = [
        (row.kind.value, show(row.node), show(_describe(row, against), _MESSAGE_CHARS))
        for row in diff.rows
    ]
    return Table(("kind", "node", "difference"), rows, total, total)


def _describe(row: WitnessRow, against: Witness) -> str:
    """Return the difference as a sentence, with foreign names escaped."""
    witness, cables = show(row.witness), show(row.cables)
    match row.kind:
        case WitnessKind.NOT_IN_WITNESS:
            return f"cables place it; by the {against}, {show(row.reason, _MESSAGE_CHARS)}"
        case WitnessKind.NOT_IN_CABLES:
            return f"the {against} place it; by its cables, {show(row.reason, _MESSAGE_CHARS)}"
        case WitnessKind.OTHER_TIER:
            return f"no tier of the cables agrees with this tier of the {against}"
    text = f"{show(row.tier)} {witness} by the {against}"
    if row.witness_most not in {row.cables, row.witness}:
        text += f", whose nodes are mostly in {show(row.witness_most)}"
    text += f"; its cables are in {cables}"
    if row.cables_most not in {row.cables, row.witness}:
        text += f", whose nodes are mostly in {show(row.cables_most)} by the {against}"
    return text
