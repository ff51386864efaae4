"""The rights that the chart gives the generator for the outputs that the values name."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.cli.commands.programs.doctor.rights import Right, list_needed_rights
from generator.objects.outputs import OutputType
from generator.reconcile.rendered import KINDS
from tests.daemonset.readers import written
from tests.daemonset.tools import NAMESPACE, render
from tests.documents import parse_documents
from tests.repository import ROOT

WRITES = {"get", "list", "watch", "create", "patch", "delete"}
OF_NODES = {"get", "list", "watch", "patch"}


def rights(output: OutputType | None, home: Path, *more: str) -> dict[tuple[str, str], set[str]]:
    """Return the verbs that the roles of the generator allow, by group and resource."""
    settings = [*([f"generator.outputs={{{output}}}"] if output else []), *more]
    answer = render(settings=settings, home=home)
    assert answer.returncode == 0, answer.stderr
    found: dict[tuple[str, str], set[str]] = {}
    for document in parse_documents(answer.stdout):
        if document["kind"] in {"ClusterRole", "Role"}:
            add_rules(document, found)
    return found


def add_rules(role: dict[str, Any], found: dict[tuple[str, str], set[str]]) -> None:
    if not role["metadata"]["name"].startswith("toponaut-generator"):
        return
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                found.setdefault((group, resource), set()).update(rule["verbs"])


@pytest.mark.parametrize("output", KINDS)
def test_an_output_gets_the_rights_that_it_needs_and_no_others(
    output: OutputType, tmp_path: Path
) -> None:
    usual, found = rights(None, tmp_path), rights(output, tmp_path)
    kinds = {(kind.group, kind.plural) for kind in KINDS[output]}
    for kind in kinds:
        assert found[kind] == (OF_NODES if kind == ("", "nodes") else WRITES)
    others = {("scheduling.run.ai", "podgroups")} if output is OutputType.KAI else set()
    changed = {key for key in found if found[key] != usual.get(key)}
    assert changed == kinds | others


def test_the_policy_protects_every_kind_of_an_output(tmp_path: Path) -> None:
    documents = parse_documents(render(home=tmp_path).stdout)
    (rules,) = [
        document["spec"]["matchConstraints"]["resourceRules"]
        for document in documents
        if document["kind"] == "ValidatingAdmissionPolicy"
        and document["metadata"]["name"] == "toponaut-generator-own-outputs"
    ]
    protected = {(row["apiGroups"][0], row["resources"][0]) for row in rules}
    kinds = {(kind.group, kind.plural) for kinds in KINDS.values() for kind in kinds}
    assert protected == kinds - {("", "nodes")}


@pytest.mark.parametrize("output", [None, *KINDS])
def test_doctor_asks_for_the_rights_that_the_chart_gives(
    output: OutputType | None, tmp_path: Path
) -> None:
    outputs = [OutputType.HYPERNODE, *([output] if output else [])]
    needed = list_needed_rights(outputs, NAMESPACE, walks_switches=False, keeps_history=False)
    assert by_kind(needed) == rights(output, tmp_path)


def test_doctor_asks_for_the_right_to_keep_a_history_if_the_chart_gives_it(tmp_path: Path) -> None:
    needed = list_needed_rights(
        [OutputType.HYPERNODE], NAMESPACE, walks_switches=False, keeps_history=True
    )
    assert by_kind(needed) == rights(None, tmp_path, "web.enabled=true")
    assert {right.name for right in needed if right.plural == "configmaps"} == {"toponaut-history"}


def by_kind(needed: Iterable[Right]) -> dict[tuple[str, str], set[str]]:
    """Return the verbs by group and resource."""
    found: dict[tuple[str, str], set[str]] = {}
    for right in needed:
        plural = f"{right.plural}/{right.subresource}" if right.subresource else right.plural
        found.setdefault((right.group, plural), set()).add(right.verb)
    return found


def test_the_examples_name_the_rights_that_their_outputs_need() -> None:
    text = (ROOT / "docs/schedulers.md").read_text()
    named = [set(one.split(",")) for one in re.findall(r"`\{([a-z,]+)\}`", text)]
    (line,) = written("schedulers.md", "Before you begin")
    assert set(re.findall(r"generator\.outputs=\{([a-z,]+)\}", line)) == {"labels,kueue"}
    for example in sorted((ROOT / "examples/schedulers").glob("*/outputs.yaml")):
        outputs = yaml.safe_load(example.read_text())["spec"]["outputs"]
        needed = {one["type"] for one in outputs} - {OutputType.HYPERNODE.value}
        assert not needed or needed in named, example
