"""No reader drops a value in silence: it has an effect, a note or a place in the ignored fields.

Each law changes one value of a fixture and requires that something of the translation changes, or
that the value was listed as ignored.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from generator.manifests.fields import Relevance
from generator.manifests.manifest_request import Translation, translate
from tests.documents import parse_documents
from tests.generator.manifests.scenes import job, pod_spec
from tests.generator.manifests.test_fixtures import CASES, FIXTURES
from topology.model.errors import PlacementRequestError

Path = tuple[str | int, ...]
MANIFESTS = [case for case in CASES if not case.startswith("sbatch")]
TYPE_FIELDS = frozenset({"apiVersion", "kind"})
"""These fields select the reader. An unknown version of a known kind is read as the known one."""


def documents_of(case: str) -> list[Any]:
    (file,) = (FIXTURES / case).glob("input.*")
    return parse_documents(file.read_text(encoding="utf-8"))


def outcome(documents: list[Any]) -> Translation | str:
    try:
        return translate(list(enumerate(documents, 1)))
    except PlacementRequestError as error:
        return str(error)


def leaves(value: object, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    else:
        yield path


def mappings(value: object, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            yield from mappings(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from mappings(inner, (*path, index))


def at(documents: list[Any], path: Path) -> Any:  # noqa: ANN401 - of a manifest
    value: Any = documents
    for key in path:
        value = value[key]
    return value


def others(value: object) -> list[object]:
    """Return other values of the same type, and one of another."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value * 7 + 3, "x"]
    return [f"{value}x", f"other-{value}", "7", 7]


def is_heard(documents: list[Any], before: Translation | str, path: Path) -> bool:
    """Return whether any other value of a leaf has an effect, or is listed or refused."""
    for other in others(at(documents, path)):
        changed = copy.deepcopy(documents)
        at(changed, path[:-1])[path[-1]] = other
        if outcome(changed) != before:
            return True
    assert isinstance(before, Translation)
    shown = ".".join(str(key) for key in path[1:] if isinstance(key, str))
    document = documents[int(path[0])]
    title = f"{document['kind']} '{document.get('metadata', {}).get('name')}'"
    return any(is_below(shown, row.path) for row in before.ignored) or any(
        note.path.startswith(title) and "is not placed" in note.text for note in before.notes
    )


def listed_in(found: Translation) -> list[str]:
    """Return the paths of what had no effect, and of what is not placed."""
    left_out = [note.path for note in found.notes if "is not placed" in note.text]
    return [*(row.path for row in found.ignored), *left_out]


def is_below(path: str, ignored: str) -> bool:
    plain = "".join(ignored.partition(": ")[2].replace("['", ".").replace("']", "").split())
    words = [word.partition("[")[0] for word in plain.split(".") if word]
    return ".".join(words) == "" or f"{path}.".startswith(".".join(words) + ".")


def is_mere_name(path: Path) -> bool:
    """Return whether a value only names a container, a pod or a topology, or orders equal pods."""
    is_name = path[-1] == "name" and (path[-2] == "metadata" or isinstance(path[-2], int))
    return is_name or str(path[-1]).endswith("/network-topology-index")


@pytest.mark.parametrize("case", MANIFESTS)
def test_it_hears_every_value_of(case: str) -> None:
    documents = documents_of(case)
    before = outcome(documents)
    deaf = [
        path
        for path in leaves(documents)
        if path[-1] not in TYPE_FIELDS
        and not is_mere_name(path)
        and "weight" not in path  # of a single preference
        and not is_heard(documents, before, path)
    ]
    assert deaf == []


@pytest.mark.parametrize("case", MANIFESTS)
def test_it_reads_or_refuses_a_value_of_any_type_anywhere_in(case: str) -> None:
    documents = documents_of(case)
    for path in filter(None, {*leaves(documents), *mappings(documents)}):
        values: tuple[object, ...] = ([7], {"zzz": 7}, "", 7, None)
        for value in values:
            changed = copy.deepcopy(documents)
            at(changed, path[:-1])[path[-1]] = value
            outcome(changed)


@pytest.mark.parametrize("case", MANIFESTS)
def test_it_lists_an_unknown_key_anywhere_in(case: str) -> None:
    documents = documents_of(case)
    before = outcome(documents)
    assert isinstance(before, Translation)
    listed, silent = listed_in(before), []
    for path in filter(None, mappings(documents)):
        changed = copy.deepcopy(documents)
        at(changed, path)["zzz"] = 5
        shown = ".".join(str(key) for key in path[1:] if isinstance(key, str))
        is_listed = any(is_below(shown, row) for row in listed)
        if outcome(changed) == before and not is_listed:
            silent.append(path)
    assert silent == []


def affinity(**fields: object) -> dict[str, Any]:
    return job(template={"spec": pod_spec(affinity={"nodeAffinity": fields})})


def preferred(*rows: tuple[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "weight": 5 + len(value),
            "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]},
        }
        for key, value in rows
    ]


@pytest.mark.parametrize(
    ("document", "path"),
    [
        pytest.param(
            affinity(
                preferredDuringSchedulingIgnoredDuringExecution=preferred(("a", "1"), ("b", "22"))
            ),
            "weight",
            id="different weights of preferences",
        ),
        pytest.param(
            affinity(
                preferredDuringSchedulingIgnoredDuringExecution=preferred(("a", "1"), ("a", "2"))
            ),
            "[1]",
            id="a second preference for one label",
        ),
    ],
)
def test_it_lists_as_ignored(document: dict[str, Any], path: str) -> None:
    found = translate([(1, document)])
    assert any(path in row.path for row in found.ignored if row.relevance is Relevance.POSSIBLE)
