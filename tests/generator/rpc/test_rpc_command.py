"""`toponaut rpc`: every method from a shell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.reconcile.round_results import RoundOutcome
from generator.rpc.client import METHODS
from generator.rpc.published_state import PublishedState
from tests.generator.rpc.clusters import snapshot_of
from tests.generator.rpc.servers import serving
from tests.generator.scenes import run
from topology.model.facts import FindingKind, Severity, finding_about

SNAPSHOT = snapshot_of(("a1", "a2"), ("b1", "b2", "b3"))
ISLAND = finding_about(FindingKind.ISLAND, ["n3"], severity=Severity.INFO, message="look")
GANG = "{spec: {groups: [{name: w, count: 3}]}}"
SEVERAL = """
specs: [{gang: x, groups: [{name: w, count: 2}]}, {gang: y, groups: [{name: w, count: 3}]}]
---
{specs: [{gang: z, groups: [{name: w, count: 1}]}]}
"""
REQUEST = """
apiVersion: toponaut.io/v1alpha1
kind: PlacementRequest
spec: {groups: [{name: w, count: 3}]}
"""


@pytest.fixture
def address() -> Iterator[str]:
    published = PublishedState(SNAPSHOT)
    published.on_round(RoundOutcome(0.1, findings=(ISLAND,)))
    with serving(published) as server:
        yield server.address


@pytest.fixture
def question(tmp_path: Path) -> Path:
    return tmp_path / "question.yaml"


@pytest.mark.parametrize(
    "method", ["Place", "PlacementService/Place", "/toponaut.v1.PlacementService/Place"]
)
@pytest.mark.parametrize("text", [GANG, REQUEST], ids=["message", "document"])
def test_it_prints_one_answer(address: str, question: Path, method: str, text: str) -> None:
    question.write_text(text)
    ran = run("rpc", method, "--server", address, "-f", question)
    assert ran.code == ExitCode.OK
    placement = json.loads(ran.out)["placement"]
    assert placement["assignment"] == [{"group": "w", "nodes": ["b1", "b2", "b3"]}]


def test_it_prints_a_stream_as_lines(address: str, question: Path) -> None:
    question.write_text(SEVERAL)
    ran = run("rpc", "PlaceBatch", "--server", address, "-f", question)
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert [len(answer["placements"]) for answer in answers] == [2, 1]
    assert [row["feasible"] for row in answers[0]["placements"]] == [True, True]


@pytest.mark.parametrize(
    ("method", "text", "key"),
    [
        ("Candidates", GANG, "candidates"),
        ("Capacity", "{tier: spine}", "domains"),
        ("GetTopology", None, "revision"),
        ("ListFindings", "{kinds: [island]}", "findings"),
    ],
)
def test_it_calls(address: str, question: Path, method: str, text: str | None, key: str) -> None:
    question.write_text(text or "")
    given = ("-f", question) if text else ()
    ran = run("rpc", method, "--server", address, *given)
    assert ran.code == ExitCode.OK, ran.err
    assert json.loads(ran.out)[key]


@pytest.mark.parametrize(
    ("method", "text", "num_lines"), [("WatchTopology", "{}", 2), ("WatchFeasible", GANG, 1)]
)
def test_it_ends_a_watch_at_its_deadline(
    address: str, question: Path, method: str, text: str, num_lines: int
) -> None:
    question.write_text(text)
    ran = run("rpc", method, "--server", address, "-f", question, "--timeout", "300ms")
    assert ran.code == ExitCode.OK, ran.err
    assert len(ran.out.splitlines()) == num_lines


def test_it_ends_a_watch_after_the_requested_number_of_answers(address: str) -> None:
    ran = run("rpc", "WatchTopology", "--server", address, "--count", 1, "--timeout", "60s")
    assert [json.loads(line)["kind"] for line in ran.out.splitlines()] == ["WATCH_KIND_INITIAL"]


@pytest.mark.parametrize(
    ("arguments", "text", "code", "message"),
    [
        pytest.param(
            ("Plaice",), None, ExitCode.USAGE, "is not one of Place, PlaceBatch", id="a wrong name"
        ),
        pytest.param(("Place",), "{spce: {}}", ExitCode.USAGE, "spce", id="an unknown field"),
        pytest.param(("Place",), "[1]", ExitCode.USAGE, "expected an object", id="a list"),
        pytest.param(("Place",), "{a: b", ExitCode.USAGE, "question.yaml", id="half a document"),
        pytest.param(("Place",), "", ExitCode.USAGE, "takes one document, got 0", id="no document"),
        pytest.param(("Place",), SEVERAL, ExitCode.USAGE, "specs", id="another method's message"),
        pytest.param(
            ("Place",),
            "{spec: {groups: [{name: w, count: -1}]}}",
            ExitCode.USAGE,
            "groups[0].count: expected a non-negative integer, got -1",
            id="a negative count",
        ),
        pytest.param(
            ("Reserve",),
            "{}",
            ExitCode.USAGE,
            "has no reservations",
            id="a feature that the server lacks",
        ),
        pytest.param(
            ("ListFindings",), "{kinds: [x]}", ExitCode.USAGE, "kinds[0]", id="an unknown kind"
        ),
        pytest.param(
            ("WatchTopology",),
            "{revision: x}",
            ExitCode.NOTHING,
            "no longer stored",
            id="an old revision",
        ),
    ],
)
def test_it_refuses(
    address: str,
    question: Path,
    arguments: tuple[str, ...],
    text: str | None,
    *,
    code: ExitCode,
    message: str,
) -> None:
    question.write_text(text or "")
    given = () if text is None else ("-f", question)
    ran = run("rpc", *arguments, "--server", address, *given)
    assert ran.code == code, ran.err
    assert message in ran.err
    assert not ran.out


def test_it_says_that_a_gang_does_not_fit(address: str, question: Path) -> None:
    question.write_text("{spec: {groups: [{name: w, count: 300}]}}")
    placement = run("rpc", "Place", "--server", address, "-f", question).document["placement"]
    assert placement["feasible"] is False
    assert placement["assignment"] == []


def test_it_requires_an_address() -> None:
    ran = run("rpc", "GetTopology")
    assert ran.code == ExitCode.USAGE
    assert "--server" in ran.err


def test_it_names_every_method_in_its_help() -> None:
    shown = run("rpc", "--help").out
    assert not [name for name in METHODS if name not in shown]
