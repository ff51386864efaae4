"""The CRDs on a real server: what it accepts, what it refuses, and what it keeps immutable."""

import secrets
import uuid
from collections.abc import Mapping
from typing import Any, Final

import pytest

from generator.kube.resources import FABRICS, REPORTS, RESERVATIONS, Resource
from tests.generator.folders import parse_fabric_document
from tests.kube.examples import MISSING, PARSERS, RESERVATION, Change, made
from tests.kube.test_crds import every_kind
from tests.lab.api_server import Answer, ApiServer
from topology.model.errors import ConfigError, ReportError
from topology.reports.fabric_status import (
    CountedSweep,
    FabricStatus,
    Sweeper,
    SweepRole,
    render_fabric,
)
from topology.reports.neighbor_report import render_report
from topology.reports.sweep_parts import split_sweep

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]


def create(api: ApiServer, resource: Resource, wanted: Mapping[str, Any]) -> Answer:
    """Create an object; in a dry run if only one of its kind may exist."""
    dry = "&dryRun=All" if resource is FABRICS else ""
    return api.request("POST", f"{resource.path()}?fieldValidation=Strict{dry}", wanted)


@every_kind
def test_it_takes_the_example_whole(api: ApiServer, resource: Resource) -> None:
    wanted = made(resource)
    PARSERS[resource](wanted)
    path = resource.path(wanted["metadata"]["name"])
    answer = api.request("POST", resource.path(), wanted)
    assert answer.status in (201, 409), answer.message
    api.expect("PUT", path, api.expect("GET", path) | {"spec": wanted["spec"]})
    if "status" in wanted:
        seen = api.expect("GET", path) | {"status": wanted["status"]}
        status = api.expect("PUT", f"{path}/status", seen)["status"]
        assert status == wanted["status"]
    found = api.expect("GET", path)
    assert found["spec"] == wanted["spec"]
    PARSERS[resource](found)


def test_it_takes_a_large_sweep_in_parts(api: ApiServer) -> None:
    node = f"test-{secrets.token_hex(4)}"
    noise = secrets.token_hex(300_000)
    parts = split_sweep(noise, node=node, subnet="fe80000000000000")
    assert len(parts) > 1
    for part in parts:
        answer = create(api, REPORTS, render_report(part))
        assert answer.status == 201, answer.message


PORT: Final = {"name": "a", "medium": "nvlink"}


def test_it_takes_the_fabric_that_an_election_writes(api: ApiServer) -> None:
    port = Sweeper(
        subnet="fe80000000000000", node="node-1", device="mlx5_0", port=1, role=SweepRole.ELECTED
    )
    counted = CountedSweep(subnet="fe80000000000000", node="node-1")
    written = render_fabric(FabricStatus(sweepers=(port,), sweeps=(counted,)))
    told = create(api, FABRICS, written)
    assert told.status in (201, 409), told.message
    assert parse_fabric_document(written).status.sweepers == (port,)
    path = stored(api, FABRICS)
    merged = render_fabric(FabricStatus(sweepers=(port,)), api.expect("GET", path))
    answer = api.request("PUT", f"{path}/status?fieldValidation=Strict", merged)
    assert answer.status == 200, answer.message
    assert answer.body["status"]["conditions"], "what the election does not know stays"


REFUSED: Final[list[tuple[str, Resource, Change, str]]] = [
    ("neither device nor sweep", REPORTS, {"spec": {}}, "exactly one of device and sweep"),
    (
        "ports of no device",
        REPORTS,
        {
            "spec.device": MISSING,
            "spec.sweep": {"subnet": "a", "sweepId": "b", "part": 0, "of": 1, "facts": ""},
        },
        "ports require a device",
    ),
    (
        "a part beyond the last",
        REPORTS,
        {
            "metadata.name": "n.sweep.1",
            "spec": {"sweep": {"subnet": "a", "sweepId": "b", "part": 1, "of": 1, "facts": ""}},
        },
        "part must be less than of",
    ),
    (
        "a sweep under the name of a node",
        REPORTS,
        {
            "metadata.name": "n1",
            "spec": {"sweep": {"subnet": "a", "sweepId": "b", "part": 0, "of": 1, "facts": ""}},
        },
        "NODE.sweep.PART",
    ),
    ("no spec", REPORTS, {"spec": MISSING}, "spec: Required value"),
    ("a device without a kind", REPORTS, {"spec.device.kind": MISSING}, "kind: Required value"),
    ("an unknown medium", REPORTS, {"spec.ports.0.medium": "string"}, "supported values"),
    ("an unknown kind of id", REPORTS, {"spec.device.ids.0.type": "dna"}, "supported values"),
    ("a name without end", REPORTS, {"spec.device.name": "x" * 513}, "may not be more than 512"),
    ("more ports than any", REPORTS, {"spec.ports": [PORT] * 4097}, "must have at most 4096 items"),
    ("a rate below nothing", REPORTS, {"spec.ports.0.rateBps": -1}, "greater than or equal to 0"),
    ("a rate in words", REPORTS, {"spec.ports.0.rateBps": "400G"}, "must be of type integer"),
    ("a subnet in another form", REPORTS, {"spec.ports.0.subnet": "FE80::"}, "should match"),
    ("a field that nobody knows", REPORTS, {"spec.devise": {}}, 'unknown field "spec.devise"'),
    ("facts larger than a part", REPORTS, {"spec": {"sweep": {"facts": "x" * 262_145}}}, "262144"),
    ("a second fabric", FABRICS, {"metadata.name": "other"}, "the one Fabric is named default"),
    ("a name for two tiers", FABRICS, {"spec.tierNames": ["a", "a"]}, "tier names must be unique"),
    ("a tier named like a number", FABRICS, {"spec.tierNames": ["2"]}, "should match"),
    ("too many tiers", FABRICS, {"spec.tierNames": list("abcdefghijklmnopq")}, "at most 16 items"),
    ("a plane without rules", FABRICS, {"spec.planes.0.any": []}, "should have at least 1 items"),
    (
        "two planes of one name",
        FABRICS,
        {"spec.planes.1.name": "storage"},
        'spec.planes[1]: Duplicate value: {"name":"storage"}',
    ),
    ("a plane with a capital", FABRICS, {"spec.planes.0.name": "Storage"}, "should match"),
    (
        "rates the wrong way round",
        FABRICS,
        {"spec.planes.1.any.0.minRateGbps": 800},
        "minRateGbps must not exceed maxRateGbps",
    ),
    ("a rate of nothing", FABRICS, {"spec.planes.1.any.0.minRateGbps": 0}, "greater than 0"),
    ("an output that is not there", FABRICS, {"spec.outputs.0.type": "pdf"}, "supported values"),
    (
        "one output twice",
        FABRICS,
        {"spec.outputs": [{"type": "hypernode"}, {"type": "hypernode", "plane": "b"}]},
        "output types must be unique",
    ),
    (
        "more than all nodes",
        FABRICS,
        {"spec.changeBudget.nodesPercent": 101},
        "less than or equal to 100",
    ),
    (
        "no time to think",
        FABRICS,
        {"spec.changeBudget.releaseAfterSeconds": 1},
        "greater than or equal to 60",
    ),
    ("a pause in words", FABRICS, {"spec.paused": "yes"}, "must be of type boolean"),
    ("no id of the request", RESERVATIONS, {"spec.requestId": MISSING}, "Required value"),
    ("an id that is no UUID", RESERVATIONS, {"spec.requestId": "mine"}, "should match"),
    (
        "an id of another version",
        RESERVATIONS,
        {"spec.requestId": str(uuid.uuid1())},
        "should match",
    ),
    ("no groups", RESERVATIONS, {"spec.groups": []}, "should have at least 1 items"),
    ("a group without pods", RESERVATIONS, {"spec.groups.0.pods": []}, "at least 1 items"),
    ("pods by halves", RESERVATIONS, {"spec.groups.0.pods.0.count": 0.5}, "type integer"),
    ("no pods of a run", RESERVATIONS, {"spec.groups.0.pods.0.count": 0}, "or equal to 1"),
    (
        "a quantity with a unit",
        RESERVATIONS,
        {"spec.groups.0.request": {"memory": "1Gi"}},
        "must be of type integer",
    ),
    (
        "an exact quantity that is whole",
        RESERVATIONS,
        {"spec.groups.0.exactRequest": {"cpu": "8"}},
        "should match",
    ),
    (
        "two groups of one name",
        RESERVATIONS,
        {"spec.groups": [RESERVATION["spec"]["groups"][0]] * 2},
        "Duplicate value",
    ),
    ("a reservation for ever", RESERVATIONS, {"spec.ttlSeconds": 100_000}, "or equal to 86400"),
]


@pytest.mark.parametrize(
    ("resource", "change", "message"),
    [pytest.param(*row[1:], id=f"{row[1].kind} with {row[0]}") for row in REFUSED],
)
def test_it_refuses(api: ApiServer, resource: Resource, change: Change, message: str) -> None:
    wanted = made(resource, change=change)
    answer = create(api, resource, wanted)
    assert 400 <= answer.status < 500
    assert message in answer.message


ONLY_THE_SERVERS: Final = frozenset(
    {
        "ports of no device",
        "a part beyond the last",
        "a sweep under the name of a node",
        "rates the wrong way round",
    }
)
"""CEL rules that readers need not rely on: an object that breaks them is useless but harmless."""


@pytest.mark.parametrize(
    ("resource", "change"),
    [
        pytest.param(row[1], row[2], id=f"{row[1].kind} with {row[0]}")
        for row in REFUSED
        if row[0] not in ONLY_THE_SERVERS
    ],
)
def test_the_models_refuse_it_as_well(resource: Resource, change: Change) -> None:
    with pytest.raises((ConfigError, ReportError)):
        PARSERS[resource](made(resource, change=change))


REFUSED_STATUS: Final[list[tuple[str, Resource, Change, str]]] = [
    (
        "two outcomes of one collector",
        REPORTS,
        {"status.collectors.1.name": "lldpd"},
        "Duplicate value",
    ),
    ("an outcome of its own", REPORTS, {"status.collectors.0.outcome": "fine"}, "supported values"),
    ("a tree that is older", FABRICS, {"status.generation": 6}, "generation must not decrease"),
    ("a condition of its own", FABRICS, {"status.conditions.0.type": "Fine"}, "supported values"),
    (
        "a condition without a reason",
        FABRICS,
        {"status.conditions.0.reason": ""},
        "should match",
    ),
    ("no real time", FABRICS, {"status.held.since": "yesterday at about noon"}, "date-time"),
    ("a device with an option", FABRICS, {"status.sweepers.0.device": "-x"}, "should match"),
    ("a port that no HCA has", FABRICS, {"status.sweepers.0.port": 256}, "or equal to 255"),
    ("a role of its own", FABRICS, {"status.sweepers.0.role": "boss"}, "supported values"),
    (
        "the epoch of a leader before",
        RESERVATIONS,
        {"status.epoch": 2},
        "written by a leader that was replaced",
    ),
    ("a phase of its own", RESERVATIONS, {"status.phase": "lost"}, "supported values"),
]


@pytest.mark.parametrize(
    ("resource", "change", "message"),
    [pytest.param(*row[1:], id=f"{row[1].kind} with {row[0]}") for row in REFUSED_STATUS],
)
def test_it_refuses_a_status(
    api: ApiServer, resource: Resource, change: Change, message: str
) -> None:
    path = stored(api, resource)
    wrong = made(resource, change=change)["status"]
    answer = api.request("PUT", f"{path}/status", api.expect("GET", path) | {"status": wrong})
    assert answer.status == 422
    assert message in answer.message


def stored(api: ApiServer, resource: Resource) -> str:
    """Store the example with its status, if its kind has one, and return its path."""
    wanted = made(resource)
    path = resource.path(wanted["metadata"]["name"])
    assert api.request("POST", resource.path(), wanted).status in (201, 409)
    if "status" in wanted:
        api.expect("PUT", f"{path}/status", api.expect("GET", path) | {"status": wanted["status"]})
    return path


def test_it_never_lets_a_reservation_change(api: ApiServer) -> None:
    path = stored(api, RESERVATIONS)
    found = api.expect("GET", path)
    found["spec"]["groups"][0]["pods"][0]["node"] = "node-2"
    answer = api.request("PUT", path, found)
    assert answer.status == 422
    assert "spec is immutable" in answer.message


@pytest.mark.parametrize(
    ("steps", "refused"),
    [
        pytest.param(["confirmed", "released"], "", id="reserved, confirmed, released"),
        pytest.param(["expired", "expired"], "", id="expired twice"),
        pytest.param(["released", "confirmed"], "keeps its state", id="released, yet confirmed"),
        pytest.param(["expired", "reserved"], "keeps its state", id="expired, yet reserved"),
        pytest.param(
            ["confirmed", "reserved"], "cannot become reserved", id="confirmed, then reserved"
        ),
    ],
)
def test_it_lets_a_reservation_become(api: ApiServer, steps: list[str], refused: str) -> None:
    path = stored(api, RESERVATIONS)
    answers = []
    for phase in steps:
        wanted = api.expect("GET", path) | {"status": {"phase": phase, "epoch": 3}}
        answers.append(api.request("PUT", f"{path}/status", wanted))
    assert answers[0].status == 200
    assert answers[-1].status == (422 if refused else 200)
    assert refused in answers[-1].message


@every_kind
def test_it_lists_by_short_name_category_and_field(api: ApiServer, resource: Resource) -> None:
    groups = api.expect("GET", f"/apis/{resource.group}/{resource.version}")["resources"]
    (found,) = (one for one in groups if one["name"] == resource.plural)
    assert found["categories"] == ["toponaut"]
    assert len(found["shortNames"]) == 1
    path = stored(api, resource)
    table = api.request("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io").body
    assert len(table["rows"][0]["cells"]) == len(table["columnDefinitions"])
    assert None not in table["rows"][0]["cells"][:2]


def test_it_selects_reservations_by_request(api: ApiServer) -> None:
    other = str(uuid.uuid4())
    wanted = made(RESERVATIONS, change={"spec.requestId": other})
    api.expect("POST", RESERVATIONS.path(), wanted)
    found = api.expect("GET", f"{RESERVATIONS.path()}?fieldSelector=spec.requestId={other}")
    assert [one["metadata"]["name"] for one in found["items"]] == [wanted["metadata"]["name"]]


def test_volcano_takes_its_own_kinds(volcano: ApiServer) -> None:
    for group in (
        "topology.volcano.sh/v1alpha1/hypernodes",
        "scheduling.volcano.sh/v1beta1/podgroups",
    ):
        assert volcano.expect("GET", f"/apis/{group}")["items"] is not None
