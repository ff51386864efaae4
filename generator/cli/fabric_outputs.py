"""The state of each output as the status of the Fabric object has it, as rows and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from generator.cli.output import Table
from generator.objects.document import mapping_at, rows_at
from topology.model.errors import show

_HELD: Final = "Held"
APPROVED: Final = "is approved: the next round of the server carries it out"
_MAX_MESSAGE: Final = 400
_HEADER: Final = ("output", "state", "objects", "last write", "message")


def read_held_plan(fabric: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the held plan in a Fabric object, and whether a person has approved it."""
    from generator.objects.write_policy import parse_write_policy

    held = mapping_at(fabric, "status", "held")
    if not held:
        return None
    return {**held, "approved": parse_write_policy(fabric).is_approved(str(held.get("hash")))}


def list_outputs(
    fabric: Mapping[str, Any] | None, *, place: str = "--kube"
) -> list[dict[str, Any]]:
    """Return a row per output of a Fabric object.

    All outputs follow one decision, so a held plan holds each that would otherwise be written.

    Args:
        fabric: the Fabric object.
        place: the option of `toponaut approve` that names where the object is.
    """
    from pydantic import ValidationError

    from generator.objects.outputs import OutputState, OutputStatus

    held = read_held_plan(fabric)
    rows = []
    for row in rows_at(fabric, "status", "outputs"):
        try:
            status = OutputStatus.model_validate(row)
        except ValidationError:  # of a newer version
            rows.append({"type": str(row.get("type")), "state": str(row.get("state"))})
            continue
        shown = status.model_dump(mode="json", by_alias=True, exclude_none=True)
        if held and status.state is OutputState.WRITTEN:
            plan = held.get("hash")
            waits = f"plan {plan} waits for: toponaut approve {plan} {place}"
            message = f"plan {plan} {APPROVED}" if held["approved"] else waits
            shown |= {"state": _HELD, "message": message}
        rows.append(shown)
    return rows


def build_outputs_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table with a line per row of `list_outputs`."""
    return Table(
        _HEADER,
        [
            (
                show(row["type"]),
                show(row["state"]),
                str(row.get("objects", "-")),
                row.get("lastWrite", "-"),
                show(row.get("message", ""), _MAX_MESSAGE),
            )
            for row in rows
        ],
    )
