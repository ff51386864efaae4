"""What `toponaut tree --kube` says of the outputs: written, held, in conflict."""

from __future__ import annotations

from typing import Any

from generator.cli.commands.fabric.tree import build_outputs_table
from generator.cli.output import render_text
from tests.generator.folders import parse_fabric_document
from topology.reports.fabric_status import fabric_head

HASH = "0123456789abcdef"
LABELS = {"type": "labels", "state": "Written", "objects": 8}
KUEUE = {"type": "kueue", "state": "Conflict", "refused": 1, "message": "toponaut is of \x1badmin"}


def fabric_of(*outputs: dict[str, Any], is_ready: bool = True, **status: Any) -> dict[str, Any]:  # noqa: ANN401 - of any field
    ready = {
        "type": "Ready",
        "status": "True" if is_ready else "False",
        "reason": "HyperNodesWritten" if is_ready else "NotWritten",
        "message": "" if is_ready else "the server refused leaf-1",
        "lastTransitionTime": "2026-11-01T08:00:00Z",
    }
    tiers = [
        {"tier": 1, "name": "leaf", "domains": 4, "nodes": 8},
        {"tier": 2, "name": "spine", "domains": 1, "nodes": 8},
    ]
    document = {
        **fabric_head(),
        "spec": {"outputs": [{"type": "hypernode"}, {"type": "labels"}, {"type": "kueue"}]},
        "status": {"tiers": tiers, "outputs": list(outputs), "conditions": [ready], **status},
    }
    parse_fabric_document(document)
    return document


def rows_of(fabric: dict[str, Any]) -> list[list[str]]:
    return [
        line.split(maxsplit=3) for line in render_text(build_outputs_table(fabric)).splitlines()[1:]
    ]


def test_it_shows_what_is_written_and_what_is_in_conflict() -> None:
    assert rows_of(fabric_of(LABELS, KUEUE)) == [
        ["hypernode", "Written", "5"],
        ["labels", "Written", "8"],
        ["kueue", "Conflict", "0", r"toponaut is of \x1badmin"],
    ]


def test_a_held_plan_holds_every_output_and_names_the_approval() -> None:
    held = {"hash": HASH, "since": "2026-11-01T08:00:00Z"}
    rows = rows_of(fabric_of(LABELS, KUEUE, held=held))
    wanted = f"plan {HASH} waits for: toponaut approve {HASH} --kube"
    assert rows[:2] == [["hypernode", "Held", "5", wanted], ["labels", "Held", "8", wanted]]
    assert rows[2][:2] == ["kueue", "Conflict"]


def test_hypernodes_that_are_not_written_have_their_reason() -> None:
    (first, *_) = rows_of(fabric_of(LABELS, is_ready=False))
    assert first == ["hypernode", "NotWritten", "-", "the server refused leaf-1"]


def test_without_hypernodes_there_is_no_row_of_them() -> None:
    fabric = fabric_of(LABELS)
    fabric["spec"]["outputs"] = [{"type": "labels"}]
    assert [row[0] for row in rows_of(fabric)] == ["labels"]


def test_a_row_of_a_newer_generator_is_shown_as_it_is() -> None:
    fabric = fabric_of(LABELS)
    fabric["status"]["outputs"].append({"type": "new", "state": "Later", "more": 1})
    assert rows_of(fabric)[-1] == ["new", "Later", "-"]


def test_without_a_status_it_names_the_command_that_compares() -> None:
    assert "toponaut plan --kube" in render_text(build_outputs_table(fabric_head()))
