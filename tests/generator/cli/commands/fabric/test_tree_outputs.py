"""What `toponaut tree --kube` and `toponaut status --kube` say of the outputs."""

from __future__ import annotations

from typing import Any

from generator.cli.commands.fabric.tree import describe_outputs
from generator.cli.fabric_outputs import list_outputs
from generator.cli.output import render_text
from tests.generator.folders import parse_fabric_document
from topology.reports.fabric_status import fabric_head

HASH = "0123456789abcdef"
NOON = "2026-11-01T12:00:00Z"
HYPERNODES = {"type": "hypernode", "state": "Written", "objects": 5, "lastWrite": NOON}
LABELS = {"type": "labels", "state": "Written", "objects": 8}
KUEUE = {"type": "kueue", "state": "Conflict", "refused": 1, "message": "toponaut is of \x1badmin"}


def fabric_of(*outputs: dict[str, Any], **status: Any) -> dict[str, Any]:  # noqa: ANN401 - of any field
    document = {**fabric_head(), "status": {"outputs": list(outputs), **status}}
    parse_fabric_document(document)
    return document


def rows_of(fabric: dict[str, Any]) -> list[list[str]]:
    return [
        line.split(maxsplit=4) for line in render_text(describe_outputs(fabric)).splitlines()[1:]
    ]


def test_it_shows_what_is_written_and_what_is_in_conflict() -> None:
    assert rows_of(fabric_of(HYPERNODES, LABELS, KUEUE)) == [
        ["hypernode", "Written", "5", NOON],
        ["labels", "Written", "8", "-"],
        ["kueue", "Conflict", "0", "-", r"toponaut is of \x1badmin"],
    ]


def test_a_held_plan_holds_every_output_and_names_the_approval() -> None:
    held = {"hash": HASH, "since": "2026-11-01T08:00:00Z"}
    fabric = fabric_of(HYPERNODES, LABELS, KUEUE, held=held)
    wanted = f"plan {HASH} waits for: toponaut approve {HASH} --kube"
    assert rows_of(fabric)[:2] == [
        ["hypernode", "Held", "5", NOON, wanted],
        ["labels", "Held", "8", "-", wanted],
    ]
    assert [row["state"] for row in list_outputs(fabric)] == ["Held", "Held", "Conflict"]


def test_a_row_of_a_newer_generator_is_shown_as_it_is() -> None:
    fabric = fabric_of(LABELS)
    fabric["status"]["outputs"].append({"type": "new", "state": "Later", "more": 1})
    assert rows_of(fabric)[-1] == ["new", "Later", "-", "-"]


def test_without_a_status_it_names_the_command_that_compares() -> None:
    assert "toponaut plan --kube" in render_text(describe_outputs(fabric_head()))
