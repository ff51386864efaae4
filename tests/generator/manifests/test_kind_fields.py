"""Every field of every schema is read, is without effect for a reason, or may matter.

Each field is set alone in a small manifest of its kind. `expected.txt` of the kind shows what it
does; a field that may matter is one that Toponaut reports, with exit code 3.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from generator.manifests.fields import ALL, FieldTable, IgnoredField, Relevance
from generator.manifests.kinds import object_fields
from generator.manifests.kinds.trainer import RUNTIME
from generator.manifests.manifest_request import FORMATS, Translation, translate
from generator.manifests.workloads import KINDS
from tests.documents import parse_documents
from tests.generator.manifests.kind_schemas import (
    ITSELF,
    LISTS,
    METADATA,
    POD_SPEC,
    TEMPLATE,
    list_files,
)
from tests.golden import Golden
from tests.lab.api_server import find_assets
from topology.model.errors import PlacementRequestError

NAMES: Final = sorted(folder.name for folder in LISTS.iterdir() if folder.is_dir())
WRITTEN_BY_HAND: Final = frozenset(
    {
        "PodCliqueSet.grove.io",
        "PodGroup.scheduling.godel.kubewharf.io",
        "Workload-v1alpha1.scheduling.k8s.io",
    }
)
OTHER_VERSIONS: Final = frozenset(
    {
        "spec.cleanPodPolicy",  # of the MPIJob of version 1
        "spec.mainContainer",  # the same
        "spec.preemptionDelay",  # of KAI's PodGroup, later than the schema
        "spec.stalenessGracePeriod",  # the same
        "torch.numProcPerNode",  # of Trainer 2.0
    }
)
"""Rows for fields that the schemas here do not have."""
SHARED: Final = (object_fields.POD_TEMPLATE, object_fields.POD_SPEC, object_fields.METADATA)
INSIDE: Final = {POD_SPEC: "spec.template.spec.", METADATA: "metadata."}
"""Where the fields of a shared type are tried: in a Job."""
VALUES: Final = {"integer": 1, "number": 1, "boolean": True, "quantity": 1, "string": "1"}
ANY_KEY: Final = "{}"
Step = str | int


def inputs_of(name: str) -> list[list[Any]]:
    """Return the documents of each small manifest of a kind; the first one is the object."""
    files = sorted((LISTS / name).glob("input*.yaml"))
    return [parse_documents(file.read_text(encoding="utf-8")) for file in files]


def lines_of(name: str) -> Iterator[tuple[str, str]]:
    """Yield (path, type) of each field with a value; templates are kinds of their own."""
    for line in (LISTS / name / "fields.txt").read_text(encoding="utf-8").splitlines():
        path, _, type_ = line.partition(" ")
        if type_ not in {TEMPLATE, POD_SPEC, METADATA, ITSELF, "object"}:
            yield INSIDE.get(name, "") + path, type_


def steps_of(path: str) -> list[Step]:
    """Return the keys and indices of a path, `{}` for any key of a mapping."""
    steps: list[Step] = []
    for word in path.split("."):
        steps.append(re.sub(r"(\[\]|\{\})+\Z", "", word))
        steps += [0 if mark == "[]" else ANY_KEY for mark in re.findall(r"\[\]|\{\}", word)]
    return steps


def set_at(document: Any, steps: list[Step], value: object) -> None:  # noqa: ANN401 - of a manifest
    """Set a value in a document; make what is missing on the way."""
    place = document
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        empty: Any = value if following is None else [] if following == 0 else {}
        if isinstance(place, list):
            if following is None or not place:
                place[:1] = [empty]
            place = place[0]
        else:
            key = next(iter(place), "k") if step == ANY_KEY else step
            if following is None or place.get(key) is None:
                place[key] = empty
            place = place[key]


def value_of(type_: str) -> object:
    base, _, values = type_.partition(":")
    if values:
        return next(value for value in values.split("|") if value != "*")
    return VALUES.get(base, {"k": "v"})


def translated(documents: list[Any]) -> Translation | None:
    """Return the translation; None if a field is refused, which it is by name."""
    try:
        return translate(list(enumerate(documents, 1)))
    except PlacementRequestError:
        return None


def verdict_of(inputs: list[list[Any]], path: str, type_: str) -> str:
    """Return what a field does in the first manifest that may have it."""
    steps = steps_of(path)
    for documents in copy.deepcopy(inputs):
        set_at(documents[0], steps, value_of(type_))
        found = translated(documents)
        if found is None:
            continue
        row = next((row for row in found.ignored if is_above(row, steps)), None)
        if row is None:
            return "read"
        return "may matter" if row.relevance is Relevance.POSSIBLE else row.reason
    return "read, and refused where it is alone"


def keys_of(row: IgnoredField) -> list[str]:
    """Return the keys of an ignored field, without indices."""
    inner = row.path.partition(": ")[2]
    words = re.findall(r"\['([^']*)'\]|([A-Za-z0-9_-]+)(?:\[[0-9]+\])*", inner)
    return [quoted or plain for quoted, plain in words if (quoted or plain)]


def is_above(row: IgnoredField, steps: list[Step]) -> bool:
    keys, above = [step for step in steps if isinstance(step, str)], keys_of(row)
    pairs = zip(keys, above, strict=False)
    is_same = all(step in {key, ANY_KEY} for step, key in pairs) and len(above) <= len(keys)
    return is_same and "(line 1)" in row.path


def shorten(verdicts: dict[str, str]) -> Iterator[str]:
    """Yield a line for each part of the tree of fields that has one verdict, as high as it is."""
    shown = set()
    for path, verdict in verdicts.items():
        words = path.split(".")
        tops = [
            ".".join(words[: length + 1])
            for length in range(1 if len(words) > 1 else 0, len(words))
        ]
        top = next(
            top
            for top in tops
            if {row for other, row in verdicts.items() if f"{other}.".startswith(f"{top}.")}
            == {verdict}
        )
        shown.add(f"{path if verdict.startswith('read') else top}: {verdict}\n")
    yield from sorted(shown)


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_every_field_does_in_a(name: str, golden: Golden) -> None:
    inputs = inputs_of(name)
    assert all(translated(documents) is not None for documents in inputs)
    verdicts = {path: verdict_of(inputs, path, type_) for path, type_ in lines_of(name)}
    golden.check(LISTS / name / "expected.txt", "".join(shorten(verdicts)))


@pytest.mark.parametrize("name", NAMES)
def test_it_reports_an_unknown_field_anywhere_in_a(name: str) -> None:
    silent = []
    for path in {f"{path.rpartition('.')[0]}.zzz" for path, _ in lines_of(name)}:
        documents, before = inputs_of(name)[0], translated(inputs_of(name)[0])
        set_at(documents[0], steps_of(path), 5)
        found = translated(documents)
        assert before is not None
        if found is not None and found.ignored == before.ignored and found.notes == before.notes:
            silent.append(path)
    assert silent == []


def test_it_has_a_list_for_every_kind_that_is_read() -> None:
    kinds = {*KINDS, *(key for format_ in FORMATS for key in format_.fields)}
    assert {f"{kind}.{group}" for group, kind in kinds} <= set(NAMES)


def rows_of(table: FieldTable, above: str) -> Iterator[str]:
    """Yield the rows of a table as the names of a field and of the field around it."""
    if not isinstance(table, Mapping):
        return
    for name, row in table.items():
        yield f"{above}.{name}"
        if row is not None and not isinstance(row, str) and row not in SHARED:
            yield from rows_of(row, name)


def test_it_has_no_row_for_a_field_that_no_schema_has() -> None:
    known = set(OTHER_VERSIONS)
    for name in NAMES:
        top = {POD_SPEC: ["spec"], METADATA: ["metadata"]}.get(name, [])
        for line in (LISTS / name / "fields.txt").read_text(encoding="utf-8").splitlines():
            words = [*top, *(str(step) for step in steps_of(line.partition(" ")[0]) if step)]
            words = [word for word in words if word != ANY_KEY]
            known |= {".".join(pair) for pair in pairwise(words)}
    tables = [kind.fields for kind in KINDS.values()]
    tables += [table for format_ in FORMATS for table in format_.fields.values()]
    rows = {row for table in [*tables, RUNTIME] for row in rows_of(table, "")}
    rows |= {*rows_of(object_fields.POD_SPEC, "spec"), *rows_of(object_fields.METADATA, "metadata")}
    assert sorted(row for row in rows - known if not row.startswith(".") and ALL not in row) == []


@pytest.mark.lab
def test_its_lists_are_those_of_the_schemas(golden: Golden) -> None:
    found = list_files(find_assets("kinds"))
    for name in sorted(set(NAMES) - WRITTEN_BY_HAND):
        golden.check(LISTS / name / "fields.txt", "".join(f"{row}\n" for row in found[name]))


def test_it_leaves_no_stray_files() -> None:
    files = {path.name for path in Path(LISTS).rglob("*") if path.is_file()}
    assert files == {"SOURCE.md", "expected.txt", "fields.txt", "input.yaml", "input-2.yaml"}
