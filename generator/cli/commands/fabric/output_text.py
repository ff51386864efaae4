"""The outputs of a cluster as text: which are written, held, or in conflict with another writer.

The rows are what the generator wrote into the Fabric object in its last round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from generator.cli.output import render_table
from generator.objects.document import mapping_at
from generator.objects.fabric import ConditionType
from generator.objects.outputs import OutputState, OutputStatus, OutputType
from topology.model.errors import show

_HELD: Final = "Held"
_HEADER: Final = ("OUTPUT", "STATE", "OBJECTS", "MESSAGE")
_MAX_MESSAGE: Final = 400
_UNREPORTED: Final = (
    "outputs: no generator has reported their state; toponaut plan --kube compares them"
)


def render_outputs_text(fabric: Mapping[str, Any]) -> str:
    """Return a table with one row per output; a line in its place if there is no status.

    Args:
        fabric: the Fabric object.
    """
    if not mapping_at(fabric, "status"):
        return _UNREPORTED
    held = _find_held(fabric)
    rows = [*_list_hypernodes(fabric, held), *_list_others(fabric, held)]
    return render_table(
        _HEADER, [(kind, state, num, show(text, _MAX_MESSAGE)) for kind, state, num, text in rows]
    )


def _find_held(fabric: Mapping[str, Any]) -> str:
    """Return what a held plan waits for; empty without one."""
    plan = mapping_at(mapping_at(fabric, "status"), "held").get("hash")
    return f"plan {plan} waits for: toponaut approve {plan} --kube" if plan else ""


def _list_hypernodes(fabric: Mapping[str, Any], held: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the row of the HyperNodes, if the Fabric object asks for them."""
    wanted = mapping_at(fabric, "spec").get("outputs")
    types = [row.get("type") for row in _list_rows(wanted)]
    if wanted is not None and OutputType.HYPERNODE not in types:
        return
    status = mapping_at(fabric, "status")
    num = sum(row.get("domains", 0) for row in _list_rows(status.get("tiers")))
    ready = next(
        (
            row
            for row in _list_rows(status.get("conditions"))
            if row.get("type") == ConditionType.READY
        ),
        {},
    )
    if held:
        yield OutputType.HYPERNODE, _HELD, str(num), held
    elif ready.get("status") == "True":
        yield OutputType.HYPERNODE, OutputState.WRITTEN, str(num), ""
    else:
        message = str(ready.get("message") or "")
        yield OutputType.HYPERNODE, str(ready.get("reason") or OutputState.UNKNOWN), "-", message


def _list_others(fabric: Mapping[str, Any], held: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the rows of the other outputs. All follow one decision, so a held plan holds all."""
    for row in _list_rows(mapping_at(fabric, "status").get("outputs")):
        try:
            status = OutputStatus.model_validate(row)
        except ValidationError:  # of a newer version
            yield show(str(row.get("type"))), show(str(row.get("state"))), "-", ""
            continue
        is_held = held and status.state is OutputState.WRITTEN
        state, message = (_HELD, held) if is_held else (status.state.value, status.message)
        yield status.type, state, str(status.objects), message


def _list_rows(value: object) -> list[Mapping[str, Any]]:
    rows = value if isinstance(value, list) else []
    return [row for row in rows if isinstance(row, Mapping)]
