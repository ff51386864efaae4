"""`toponaut status`: the state of a fabric on one screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.cli.cluster_input import ClusterInput
from generator.cli.commands.fabric.status import build_status, list_parts
from generator.cli.exit_codes import ExitCode
from generator.cli.output import render_text
from tests.generator.folders import StoreFolder
from tests.generator.scenes import RAILS, Scene, run
from topology.model.tree import DomainSpec, build_tree
from topology.reports.fabric_status import fabric_head


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the files of sixteen hosts with one port each, of which one lost its cable."""
    folder = tmp_path_factory.mktemp("status") / "fabric"
    words = ("--kind", "fat-tree", "--hosts", 16, "--rails", 1, "--radix", 8, "--out", folder)
    assert run("simulate", "fabric", *words).code == ExitCode.OK
    return folder


def words_of(fabric: Path) -> tuple[object, ...]:
    return ("status", "--reports", fabric / "reports", "--nodes", fabric / "nodes.yaml")


def test_it_prints_what_is_well_on_one_screen(fabric: Path) -> None:
    head, reports, sweep, *lines = run(*words_of(fabric)).out.splitlines()
    assert head == "plane compute: 16 nodes in 4 leaves, 1 spine"
    assert reports.startswith("reports: 16 of 16 nodes; of 20")
    assert sweep.startswith("sweep of subnet fe80000000000000 by node-0001 at 20")
    assert lines == [
        "findings: 0 errors, 0 warnings, 0 info",
        "free: 128 slots",
        "TIER   FREEST DOMAIN  FREE NODES  LARGEST GANG",
        "leaf   leaf-g01       4           32",
        "spine  spine-01-02    16          128",
    ]


def test_it_names_what_is_wrong_and_fails_if_it_checks(fabric: Path, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    for file in (fabric / "reports").iterdir():
        if "node-0003" not in file.name:
            (reports / file.name).write_bytes(file.read_bytes())
    words = ("status", "--reports", reports, "--nodes", fabric / "nodes.yaml")
    ran = run(*words)
    assert ran.code == ExitCode.OK
    assert "reports: 15 of 16 nodes; 1 silent (6.2%); of 20" in ran.out
    assert "no fresh report: node-0003" in ran.out
    assert "warning silent-node" in ran.out
    found = run(*words, "-o", "json").document
    assert found["first"][0]["severity"] == "warning"
    assert found["quiet"] == ["node-0003"]


@pytest.mark.parametrize(
    ("more", "code"), [("", ExitCode.OK), ('{"nodes": [{"name": "gone-1"},', 5)]
)
def test_a_check_fails_if_a_node_has_no_place(
    more: str, code: int, fabric: Path, tmp_path: Path
) -> None:
    nodes = tmp_path / "nodes.yaml"
    text = (fabric / "nodes.yaml").read_text(encoding="utf-8")
    nodes.write_text(text.replace('{"nodes": [', more, 1) if more else text, encoding="utf-8")
    words = ("status", "--reports", fabric / "reports", "--nodes", nodes, "--check")
    ran = run(*words)
    assert ran.code == code, ran.out + ran.err
    assert ("without a place: gone-1" in ran.out) is bool(more)


TREE = build_tree([DomainSpec("leaf-1", 1, None, ("n1",))], tiers=("leaf",))


def test_it_shows_who_swept_each_subnet_and_when(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    store = scene.store("2026-11-01T08:00:00Z")
    words = ("status", "--reports", store / "neighborreports")
    ran = run(*words, "-o", "json").document
    times = {"oldest": "2026-11-01T08:00:00Z", "newest": "2026-11-01T08:00:00Z"}
    num = len(scene.hosts)
    counts = {"number": num, "nodes": num, "ofNodes": num, "silentNodes": 0, "switches": 0}
    assert ran["reports"] == counts | times
    (sweep,) = ran["sweeps"]
    assert (sweep["node"], sweep["complete"]) == (scene.hosts[0], True)
    assert f"sweep of subnet {sweep['subnet']} by {scene.hosts[0]}" in run(*words).out


def test_the_reports_of_switches_are_counted_apart(tmp_path: Path) -> None:
    words = ("--kind", "fat-tree", "--hosts", 16, "--rails", 1, "--radix", 8)
    more = ("--medium", "ethernet", "--out", tmp_path)
    assert run("simulate", "fabric", *words, *more).code == ExitCode.OK
    ran = run("status", "--reports", tmp_path / "reports", "--nodes", tmp_path / "nodes.yaml")
    assert "reports: 16 of 16 nodes and 6 switches; of 20" in ran.out


def test_a_subnet_without_a_complete_sweep_says_so() -> None:
    document = build_status(ClusterInput(TREE, None, (), unknown_subnets=("fe80",)))
    assert "sweep of subnet fe80: no complete one" in render_text(list_parts(document))


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ({"held": {"hash": "0123456789abcdef", "since": "2026-11-01T08:00:00Z"}}, True),
        ({"held": None}, False),
        ({}, False),
    ],
    ids=["held", "held no more", "never held"],
)
def test_it_shows_the_plan_that_is_held(status: dict[str, object], *, line: bool) -> None:
    document = build_status(ClusterInput(TREE, None, (), fabric={"status": status}))
    text = render_text(list_parts(document))
    held = "held: plan 0123456789abcdef since 2026-11-01T08:00:00Z; toponaut plan --kube shows it"
    assert (held in text) is line


HELD = {"hash": "0123456789abcdef", "since": "2026-11-01T08:00:00Z"}
HYPERNODES = {"type": "hypernode", "state": "Written", "objects": 5}


def test_it_shows_the_plan_that_a_server_holds_in_a_folder(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    store, nodes = scene.store(), scene.nodes()
    status = {"held": HELD, "outputs": [HYPERNODES]}
    StoreFolder(store).write_fabric(fabric_head() | {"status": status})
    ran = run("status", "--store", store, "--nodes", nodes)
    plan = f"toponaut plan --store {store} --nodes {nodes}"
    assert f"held: plan {HELD['hash']} since {HELD['since']}; {plan} shows it" in ran.out
    assert f"waits for: toponaut approve {HELD['hash']} --store {store}" in ran.out
    document = run("status", "--store", store, "--nodes", nodes, "-o", "json").document
    held = {**HELD, "approved": False}
    assert (document["held"], document["nodes"]) == (held, len(scene.hosts))


def test_a_held_plan_that_is_approved_says_that_it_only_waits_for_the_server(
    tmp_path: Path,
) -> None:
    store = Scene.of(tmp_path, RAILS).store()
    folder = StoreFolder(store)
    folder.write_fabric(fabric_head() | {"status": {"held": HELD, "outputs": [HYPERNODES]}})
    folder.approve(str(HELD["hash"]))
    text = run("status", "--store", store).out
    assert text.count("is approved: the next round of the server carries it out") == 2
    assert "toponaut approve" not in text


def test_a_folder_that_no_server_has_written_holds_nothing(tmp_path: Path) -> None:
    ran = run("status", "--store", Scene.of(tmp_path, RAILS).store(), "-o", "json")
    assert (ran.document["held"], ran.document["outputs"]) == (None, [])


def test_a_folder_and_a_cluster_are_not_one_source(tmp_path: Path) -> None:
    ran = run("status", "--store", tmp_path, "--kube")
    assert (ran.code, "give only one of --store and --kube" in ran.err) == (ExitCode.USAGE, True)


def test_the_largest_gang_is_what_is_free_in_the_freest_domain() -> None:
    specs = [DomainSpec("leaf-1", 1, None, ("n1",)), DomainSpec("leaf-2", 1, None, ("n2", "n3"))]
    document = build_status(ClusterInput(build_tree(specs, tiers=("leaf",)), None, ()))
    (row,) = document["freest"]
    assert (row["domain"], row["largestGang"]) == ("leaf-2", 2)


def test_without_a_domain_there_is_no_table_of_domains(tmp_path: Path) -> None:
    reports = Scene.of(tmp_path, RAILS).reports()
    for file in reports.glob("*sweep*"):
        file.unlink()
    text = run("status", "--reports", reports).out
    assert text.endswith("free: 0 slots\n")
    assert "give the output of ibnetdiscover" in text


def test_reports_of_unknown_age_say_so(tmp_path: Path) -> None:
    store = Scene.of(tmp_path, RAILS).store("some day")
    ran = run("status", "--reports", store / "neighborreports")
    assert "of unknown age" in ran.out
