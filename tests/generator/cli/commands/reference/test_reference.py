"""`explain` and `completion`: every kind and every field is explained, and shells complete."""

from __future__ import annotations

import json
import os
import re
import subprocess  # noqa: TID251 - runs the program under test
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from generator.cli.commands.reference.completion import COMPLETE_VARIABLE, SHELLS
from generator.cli.commands.reference.explain import explain_field
from generator.cli.exit_codes import ExitCode
from generator.cli.schemas import SCHEMAS, build_schema
from tests.generator.scenes import run
from tests.repository import ROOT
from topology.findings.kind_descriptions import KIND_DESCRIPTIONS
from topology.model.facts import FindingKind


def test_it_explains_every_finding() -> None:
    for kind in FindingKind:
        ran = run("explain", kind.value)
        assert ran.code == ExitCode.OK
        head, blank, meaning, _, advice = ran.out.splitlines()
        assert head == f"finding {kind.value} ({KIND_DESCRIPTIONS[kind].severities})"
        assert (blank, bool(meaning)) == ("", True)
        assert advice.startswith("What to do: ")
        assert "](" not in ran.out


def test_the_docs_have_the_same_texts_in_the_same_order() -> None:
    document = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    kinds = document.partition("\n## Kinds of findings\n")[2]
    rows = [line for line in kinds.splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{kind}` | {row.severities} | {row.meaning} | {row.advice} |"
        for kind, row in KIND_DESCRIPTIONS.items()
    ]


def paths(document: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield the paths of all fields of a schema, lists and references followed once."""

    def walk(path: str, field: Mapping[str, Any], seen: frozenset[str]) -> Iterator[str]:
        yield path
        for inner in re.findall(r"#/\$defs/(\w+)", json.dumps(field)):
            if inner not in seen:
                definition = document["$defs"][inner]
                for key, row in definition.get("properties", {}).items():
                    yield from walk(f"{path}.{key}", row, seen | {inner})

    for key, row in document["properties"].items():
        yield from walk(f"{name}.{key}", row, frozenset())


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_it_explains_every_field_of(name: str) -> None:
    document = build_schema(name)
    for path in {name, *paths(document, name)}:
        assert next(explain_field(document, path)).startswith(f"{path}: ")
    assert run("explain", name).out == "\n".join(explain_field(document, name)) + "\n"


def test_every_field_of_a_request_has_a_description() -> None:
    definitions = build_schema("request")["$defs"]
    silent = [
        f"{name}.{key}"
        for name in ("Spec", "GroupRow", "LayerRow", "SpreadRow")
        for key, row in definitions[name]["properties"].items()
        if not row.get("description")
    ]
    assert not silent


@pytest.mark.parametrize(
    ("topic", "problem"),
    [
        ("nope", "nothing is called 'nope'; known: fabric, planes, "),
        ("fabric.spec.nope", "fabric.spec.nope: there is no field 'nope'; known: planes, "),
        ("fabric.kind.x", "fabric.kind.x: there is no field 'x'; it has no fields"),
        ("swapped-cables", "nothing is called 'swapped-cables'; did you mean swapped-cable?"),
        ("fabric.spec.plane", "fabric.spec.plane: there is no field 'plane'; did you mean planes?"),
    ],
)
def test_it_says_what_is_known_instead(topic: str, problem: str) -> None:
    ran = run("explain", topic)
    assert ran.code == ExitCode.USAGE
    assert ran.err.startswith(f"error: {problem}")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_gets_a_script_that_calls_the_program(shell: str) -> None:
    ran = run("completion", shell)
    assert ran.code == ExitCode.OK
    assert COMPLETE_VARIABLE in ran.out


def test_the_program_completes_commands() -> None:
    words = {"COMP_WORDS": "toponaut ex", "COMP_CWORD": "1", COMPLETE_VARIABLE: "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-m", "generator"],
        cwd=ROOT,
        env=os.environ | words,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["plain,export", "plain,explain"]


def test_a_default_is_shown_as_a_person_writes_it() -> None:
    head = run("explain", "fabric.spec.outputs").out.splitlines()[0]
    assert head.endswith('(default [{"type": "hypernode", "plane": "compute"}])')


def test_it_lists_what_it_can_explain() -> None:
    ran = run("explain")
    assert ran.code == ExitCode.OK
    listed = {line.split()[0] for line in ran.out.splitlines() if line.startswith("  ")}
    assert listed == {kind.value for kind in FindingKind}
    assert ran.out.rstrip().endswith(", ".join(sorted(SCHEMAS)))


def test_the_advice_of_a_kind_keeps_the_words_of_its_links() -> None:
    advice = run("explain", "lost-switch").out
    assert "If it was removed on purpose, silence the finding (docs/cabling.md)." in advice
