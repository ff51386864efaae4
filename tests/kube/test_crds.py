"""The CRDs: equal to the models, bounded, and shaped as kubectl users expect."""

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
import yaml

from generator.cli.schemas import Model, schema_of
from generator.kube.resources import FABRICS, RECORDS, REPORTS, RESERVATIONS, Resource
from generator.objects.fabric import FabricDocument
from generator.objects.reservation import PlacementReservation
from generator.objects.tree_record import TreeRecordDocument
from tests.kube.shapes import differences, root_schema, shape_of_crd, shape_of_model, walk
from tests.repository import ROOT
from topology.reports.neighbor_report import NeighborReport

FOLDER: Final = ROOT / "daemonset" / "crds"
MODELS: Final[Mapping[Resource, Model]] = {
    FABRICS: FabricDocument,
    REPORTS: NeighborReport,
    RESERVATIONS: PlacementReservation,
    RECORDS: TreeRecordDocument,
}
MOST_TEXT: Final = 256 * 1024


def read_crd(resource: Resource) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / f"{resource.plural}.yaml").read_text())
    return found


every_kind = pytest.mark.parametrize("resource", MODELS, ids=lambda one: one.kind)


def test_it_has_a_file_for_each_kind_and_no_other() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == {one.plural for one in MODELS}


@every_kind
def test_it_matches_the_model(resource: Resource) -> None:
    model = shape_of_model(schema_of(MODELS[resource]))
    assert differences(model, shape_of_crd(read_crd(resource))) == []


def _at(crd: Mapping[str, Any], *path: str) -> Any:  # noqa: ANN401 - a place in a document
    found: Any = root_schema(crd)["properties"]
    for step in path:
        found = found[step]
    return found


DRIFTS: Final[Mapping[str, Callable[[Mapping[str, Any]], object]]] = {
    "a field that only the model has": lambda crd: _at(crd, "spec", "properties").pop("device"),
    "a field that only the CRD has": lambda crd: _at(crd, "spec", "properties").update(
        new={"type": "string"}
    ),
    "another type": lambda crd: _at(crd, "status", "properties", "observedAt").update(
        type="boolean"
    ),
    "another limit": lambda crd: _at(crd, "spec", "properties", "ports").update(maxItems=1),
    "a limit that only the CRD has": lambda crd: _at(crd, "spec", "properties", "ports").update(
        minItems=1
    ),
    "a word less in a closed set": lambda crd: _at(
        crd, "spec", "properties", "device", "properties", "kind", "enum"
    ).pop(),
    "a field that must be there": lambda crd: _at(
        crd, "spec", "properties", "device", "required"
    ).append("ids"),
    "an object that must be there": lambda crd: root_schema(crd)["required"].append("status"),
    "another pattern": lambda crd: _at(
        crd, "spec", "properties", "ports", "items", "properties", "subnet"
    ).update(pattern="^.*$"),
    "integers of 32 bits": lambda crd: _at(
        crd, "spec", "properties", "ports", "items", "properties", "rateBps"
    ).update(format="int32"),
}


@pytest.mark.parametrize("drift", DRIFTS.values(), ids=DRIFTS.keys())
def test_it_notices(drift: Callable[[Mapping[str, Any]], object]) -> None:
    crd = copy.deepcopy(read_crd(REPORTS))
    drift(crd)
    assert len(differences(shape_of_model(schema_of(NeighborReport)), shape_of_crd(crd))) == 1


@every_kind
def test_it_bounds_every_text_list_and_map(resource: Resource) -> None:
    unbounded = [
        path
        for path, one in walk(root_schema(read_crd(resource)))
        if path not in ("", ".apiVersion", ".kind", ".metadata")
        and not (
            one["type"] in ("integer", "number", "boolean")
            or "enum" in one
            or one.get("maxLength", MOST_TEXT + 1) <= MOST_TEXT
            or "maxItems" in one
            or "maxProperties" in one
            or "properties" in one
        )
    ]
    assert unbounded == []


@every_kind
def test_it_says_how_every_list_is_merged(resource: Resource) -> None:
    for path, one in walk(root_schema(read_crd(resource))):
        if one["type"] != "array":
            continue
        kind = one.get("x-kubernetes-list-type")
        assert kind in ("atomic", "map", "set"), path
        assert kind != "set" or one["items"]["type"] == "string", path
        keys = one.get("x-kubernetes-list-map-keys", [])
        assert (kind == "map") is bool(keys), path
        assert set(keys) <= set(one["items"].get("required", keys and [])), path


@every_kind
def test_it_explains_itself_to_kubectl(resource: Resource) -> None:
    crd = read_crd(resource)
    names, (version,) = crd["spec"]["names"], crd["spec"]["versions"]
    assert crd["metadata"]["name"] == f"{resource.plural}.{resource.group}"
    assert (crd["spec"]["group"], version["name"]) == (resource.group, resource.version)
    assert (names["plural"], names["kind"]) == (resource.plural, resource.kind)
    assert names["categories"] == ["toponaut"]
    assert len(names["shortNames"]) == 1
    assert crd["spec"]["scope"] == "Cluster"
    assert version["subresources"] == {"status": {}}
    assert version["additionalPrinterColumns"]
    assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    for path, one in walk(root_schema(crd)):
        for rule in one.get("x-kubernetes-validations", []):
            assert rule["message"], path
        text = one.get("description", "")
        assert "`" not in text, path
        assert "None" not in text, f"{path}: a word of Python"


def test_it_has_short_names_that_do_not_clash() -> None:
    short = [name for one in MODELS for name in read_crd(one)["spec"]["names"]["shortNames"]]
    assert len(set(short)) == len(MODELS)
    assert "nbr" in short
