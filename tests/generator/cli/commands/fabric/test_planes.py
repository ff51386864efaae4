"""Networks on the command line: `planes`, and the options `--planes` and `--plane`."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from generator.cli.exit_codes import ExitCode
from generator.ingest.sources import read_plane_file
from generator.objects.fabric import ConditionType
from generator.objects.plane_config import PlaneChoice, parse_planes
from generator.placement.cluster.snapshot import Snapshot
from generator.reconcile.round_results import RoundOutcome
from generator.server.loop import LoopConfig, ReconcileLoop
from generator.store.object_folders import read_hypernodes
from tests.generator.folders import StoreFolder
from tests.generator.scenes import RAILS, Scene, run
from tests.topology.networks import infiniband, linked, near, rdma, with_ports
from topology.model.errors import ConfigError
from topology.model.facts import GpuDistance, Medium, Port, PortState
from topology.planes.policy import PlanePolicy, PortRule
from topology.reports.neighbor_report import build_report

HOSTS = [f"h{number}" for number in range(8)]
POLICIES = """
planes:
  - name: storage
    any:
      - switches: ["pool*"]
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return reports of eight hosts: compute in two leaves, storage on one switch, slow ports."""
    store = StoreFolder(tmp_path_factory.mktemp("three") / "store")
    for number, host in enumerate(HOSTS):
        ports = [
            rdma(linked("ens1", f"leaf{number // 4}")),
            rdma(linked("ens2", "pool1")),
            linked("eno1", "sw1", 1),
        ]
        device = with_ports(host, ports).device
        store.write_report(build_report(device, name=host))
    return store.reports


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    file = tmp_path / "planes.yaml"
    file.write_text(POLICIES)
    return file


def domains(document: dict[str, Any]) -> list[list[str]]:
    return [row["nodes"] for row in document["tiers"][0]["domains"]]


def test_it_lists_each_network_with_its_ports_and_the_reasons(reports: Path) -> None:
    ran = run("planes", "--reports", reports, "-o", "json")
    assert ran.code == ExitCode.OK
    compute, management = ran.document
    assert (compute["name"], compute["switches"]) == ("compute", ["leaf0", "leaf1", "pool1"])
    assert (management["name"], management["switches"]) == ("management", ["sw1"])
    assert len(compute["ports"]) == 16
    assert management["ports"][0] == {
        "device": "h0",
        "port": "eno1",
        "to": {"device": "sw1", "port": "to-eno1-of-h0"},
        "why": "slower than a quarter of the node's fastest, and without RDMA",
    }


def test_it_prints_a_table_of_networks(reports: Path, policies: Path) -> None:
    lines = run("planes", "--reports", reports, "--planes", policies).out.splitlines()
    assert [line.split()[0] for line in lines] == ["PLANE", "compute", "storage", "management"]
    assert re.split(r"  +", lines[2]) == [
        *("storage", "a rule of the plane's policy"),
        *("8", "8", "8", "1", "ens2"),
    ]


def test_it_prints_the_tree_of_the_chosen_network(reports: Path, policies: Path) -> None:
    domains_by_plane = {}
    for plane in ("compute", "storage", "management"):
        words = ("--reports", reports, "--planes", policies, "--plane", plane, "-o", "json")
        document = run("tree", *words).document
        assert document["plane"] == plane
        domains_by_plane[plane] = domains(document)
    assert domains_by_plane == {
        "compute": [HOSTS[:4], HOSTS[4:]],
        "storage": [HOSTS],
        "management": [HOSTS],
    }


def test_it_names_the_network_in_which_a_node_has_no_link(tmp_path: Path) -> None:
    store = StoreFolder(tmp_path / "store")
    for host, to in (("h1", "leaf1"), ("h2", "oob1")):
        device = with_ports(host, [linked("eth0", to)]).device
        store.write_report(build_report(device, name=host))
    words = ("--reports", store.reports, "--plane", "management", "-o", "json")
    assert run("tree", *words).document["unplaced"] == [
        {"node": "h1", "reason": "no link in the management plane is known"}
    ]


def test_it_plans_hypernodes_of_the_chosen_network(
    reports: Path, policies: Path, tmp_path: Path
) -> None:
    (tmp_path / "none").mkdir()
    words = ("--reports", reports, "--planes", policies, "--observed", tmp_path / "none")
    compute, storage = (
        run("plan", *words, *more, "-o", "json").document for more in ((), ("--plane", "storage"))
    )
    assert len(compute) > len(storage) == 1


def test_it_places_in_the_network_of_the_request(
    reports: Path, policies: Path, tmp_path: Path
) -> None:
    head = {"apiVersion": "toponaut.io/v1alpha1", "kind": "PlacementRequest"}
    for plane, has_one_leaf in (("compute", False), ("storage", True)):
        spec = {"plane": plane, "groups": [{"name": "w", "count": 8, "required": 1}]}
        file = tmp_path / "gang.json"
        file.write_text(json.dumps({**head, "spec": spec}))
        words = ("-f", file, "--reports", reports, "--planes", policies, "-o", "json")
        ran = run("place", *words)
        assert (ran.code, ran.document["feasible"]) == (ExitCode.OK, has_one_leaf)


def test_it_serves_the_chosen_network(reports: Path, policies: Path) -> None:
    snapshots: list[Snapshot] = []
    rounds = ReconcileLoop(
        StoreFolder(reports.parent),
        LoopConfig(
            period=timedelta(minutes=1),
            now=lambda: datetime(2026, 7, 1, tzinfo=UTC),
            planes=PlaneChoice(read_plane_file(policies), "storage"),
        ),
        publish=lambda snapshot, _: snapshots.append(snapshot),
    )
    rounds.tick()
    (snapshot,) = snapshots
    assert snapshot.tree.plane == "storage"
    assert len(read_hypernodes(reports.parent / "hypernodes").values) == 1


def test_it_writes_nothing_while_no_cable_of_the_compute_network_is_known(tmp_path: Path) -> None:
    """The front network has cables, and would give a tree of its own."""
    store = StoreFolder(tmp_path)
    for number, host in enumerate(HOSTS):
        unswept = infiniband(Port("mlx5_0/1", state=PortState.UP), "fe80000000000000")
        ports = [near(unswept), rdma(linked("ens1", f"front{number // 4}", 200))]
        store.write_report(build_report(with_ports(host, ports).device, name=host))
    outcomes: list[RoundOutcome] = []
    rounds = ReconcileLoop(
        StoreFolder(tmp_path),
        LoopConfig(
            period=timedelta(minutes=1),
            now=lambda: datetime(2026, 7, 1, tzinfo=UTC),
            round_listeners=(outcomes.append,),
        ),
        publish=lambda *_: pytest.fail("no tree is known"),
    )
    rounds.tick()
    conditions = {row.type: row for row in outcomes[0].conditions}
    assert not (tmp_path / "hypernodes").exists()
    assert conditions[ConditionType.READY].status == "False"
    assert "No sweep of subnet fe80000000000000 counts" in conditions[ConditionType.READY].message
    degraded = conditions[ConditionType.DEGRADED]
    assert (degraded.status, degraded.reason) == ("True", "FindingsStand")


def test_it_refuses_a_network_without_ports(reports: Path) -> None:
    for command in ("planes", "tree"):
        ran = run(command, "--reports", reports, "--plane", "nfs\x1b")
        assert (ran.code, ran.out) == (ExitCode.USAGE, "")
        assert "'nfs\\x1b' has no ports; planes with ports: compute, management" in ran.err


def test_it_refuses_to_select_a_network_of_hypernodes(tmp_path: Path) -> None:
    for more in (("--plane", "compute"), ("--planes", __file__)):
        ran = run("tree", "--hypernodes", tmp_path, *more)
        assert ran.code == ExitCode.USAGE
        assert "is already a tree" in ran.err
    assert run("planes", "--hypernodes", tmp_path).code == ExitCode.USAGE


def test_it_exits_with_4_without_usable_input(tmp_path: Path) -> None:
    assert run("planes", "--reports", tmp_path).code == ExitCode.NOTHING
    assert run("planes").code == ExitCode.USAGE


def test_it_reads_a_sweep_as_one_network(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    (row,) = run("planes", scene.sweep(), "-o", "json").document
    assert (row["name"], len(row["ports"])) == ("compute", 64)


def test_it_reads_every_criterion_of_a_rule() -> None:
    raw = """
planes:
  - name: x-1
    any:
      - medium: infiniband
        ports: ["mlx5_*/1"]
        hosts: [dgx*]
        switches: [leaf?]
        subnets: ["0xfe80000000000001"]
        minRateGbps: 100
        maxRateGbps: 400.5
        gpu: same-numa
      - {}
"""
    assert parse_planes(raw.encode(), source="p") == (
        PlanePolicy(
            "x-1",
            (
                PortRule(
                    media=frozenset({Medium.INFINIBAND}),
                    ports=("mlx5_*/1",),
                    hosts=("dgx*",),
                    switches=("leaf?",),
                    subnets=frozenset({"fe80000000000001"}),
                    min_rate_bps=100 * 10**9,
                    max_rate_bps=400_500_000_000,
                    gpu=GpuDistance.NUMA,
                ),
                PortRule(),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("planes: []\n---\nplanes: []", "one document, got 2", id="two documents"),
        pytest.param("planes: []", "planes: expected at least 1 item", id="no plane"),
        pytest.param("planes: [{name: A, any: [{}]}]", "planes.0.name", id="a name in capitals"),
        pytest.param("planes: [{name: a}]", "planes.0.any: is missing", id="no rule"),
        pytest.param(
            "planes: [{name: a, any: [{port: [x]}]}]", "planes.0.any.0.port", id="a misspelt rule"
        ),
        pytest.param(
            "planes: [{name: a, any: [{medium: wifi}]}]", "any.0.medium", id="an unknown medium"
        ),
        pytest.param(
            "planes: [{name: a, any: [{minRateGbps: true}]}]",
            "planes.0.any.0.minRateGbps: expected a number",
            id="a boolean as a rate",
        ),
        pytest.param(
            "planes: [{name: a, any: [{minRateGbps: 400, maxRateGbps: 100}]}]",
            "planes.0.any.0: minRateGbps is above maxRateGbps",
            id="bounds that no rate can meet",
        ),
        pytest.param(
            "planes: [{name: a, any: [{subnets: [x]}]}]",
            "not a subnet prefix",
            id="an invalid subnet",
        ),
        pytest.param(
            "planes: [{name: a, any: [{}]}, {name: a, any: [{}]}]",
            "listed twice",
            id="a plane twice",
        ),
    ],
)
def test_it_refuses_a_file_with(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_planes(text.encode(), source="p")
    assert problem in str(raised.value)


def test_it_has_a_schema_of_the_file(policies: Path) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(run("schema", "planes").out))
    assert validator.is_valid(yaml.safe_load(policies.read_text()))
    assert not validator.is_valid({"planes": [{"name": "a", "any": [{"port": ["x"]}]}]})


def test_it_separates_the_subnets_of_reports(tmp_path: Path) -> None:
    store = StoreFolder(tmp_path / "store")
    for number, host in enumerate(HOSTS[:4]):
        subnet = f"fe8000000000000{number % 2 + 1}"
        device = with_ports(host, [infiniband(linked("mlx5_0/1", f"s{number % 2}"), subnet)]).device
        store.write_report(build_report(device, name=host))
    file = tmp_path / "planes.yaml"
    file.write_text("planes: [{name: b, any: [{subnets: [fe80000000000002]}]}]")
    ran = run("planes", "--reports", store.reports, "--planes", file, "-o", "json")
    assert [(row["name"], len(row["ports"])) for row in ran.document] == [("compute", 2), ("b", 2)]
