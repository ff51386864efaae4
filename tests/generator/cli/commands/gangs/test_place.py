"""`toponaut place`: documents, text, exit codes, and refused requests with their messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from generator.cli.exit_codes import ExitCode
from generator.cli.group import cli
from generator.cli.host_lists import HostListFormat
from generator.cli.running_pods import read_running_gangs
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.engine import place
from generator.placement.request import parse_request
from generator.rpc.published_state import PublishedState
from tests.generator.rpc.servers import serving
from tests.generator.scenes import PAIRS, RAILS, Ran, Scene, run
from topology.model.tree import API_VERSION, render_tree
from topology.synthetic import derive_truth

DOCUMENT_KEYS = [
    "feasible",
    "assignment",
    "tier",
    "objective",
    "proved",
    "victims",
    "reason",
    "alternatives",
    "domains",
]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    made = Scene.of(tmp_path_factory.mktemp("scene"), RAILS)
    made.reports()
    made.write("tree.json", json.dumps(render_tree(derive_truth(made.damaged))))
    return made


def request_document(**spec: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    spec.setdefault("groups", [{"name": "w", "count": 4}])
    return {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": spec}


def write_request(folder: Path, **spec: Any) -> Path:  # noqa: ANN401 - any field
    file = folder / "request.json"
    file.write_text(json.dumps(request_document(**spec)))
    return file


def place_in(scene: Scene, file: Path, *words: object) -> Ran:
    return run("place", "-f", file, "--tree", scene.root / "tree.json", *words)


def test_it_prints_the_documented_fields(scene: Scene, tmp_path: Path) -> None:
    ran = place_in(scene, write_request(tmp_path, groups=[{"name": "w", "count": 2}]), "-o", "json")
    assert ran.code == ExitCode.OK
    assert list(ran.document) == DOCUMENT_KEYS
    request = parse_request(request_document(groups=[{"name": "w", "count": 2}]))
    expected = place(build_snapshot(derive_truth(scene.damaged), {}), request)
    assert ran.document == expected.render()


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("sweep.txt",), id="a sweep as an argument"),
        pytest.param(
            ("--tree", "tree.json", "--nodes", "nodes.yaml"), id="a tree and an inventory"
        ),
        pytest.param(
            ("--hypernodes", "hypernodes", "--nodes", "nodes.yaml"),
            id="hypernodes and an inventory",
        ),
    ],
)
def test_it_places_in(scene: Scene, tmp_path: Path, words: tuple[str, ...]) -> None:
    scene.sweep()
    scene.nodes()
    if not (scene.root / "hypernodes").exists():
        assert run("apply", "--store", scene.root / "store").code == ExitCode.OK
        (scene.root / "store" / "hypernodes").rename(scene.root / "hypernodes")
    options = [word if word.startswith("--") else scene.root / word for word in words]
    slots = 8 if "--nodes" in words else 1
    file = write_request(tmp_path, groups=[{"name": "w", "count": 4 * slots}])
    ran = run("place", "-f", file, *options, "-o", "json")
    assert ran.code == ExitCode.OK, ran.err
    assert ran.document["feasible"]
    assert len(set(ran.document["assignment"]["w"])) == 4


def test_it_reads_stdin_and_yaml(scene: Scene) -> None:
    text = f"apiVersion: {API_VERSION}\r\nkind: PlacementRequest\r\n"
    text += "spec: {groups: [{name: w, count: 2}]}\r\n"
    words = ["place", "-f", "-", "--tree", str(scene.root / "tree.json"), "-o", "json"]
    result = CliRunner().invoke(cli, words, input=text.encode())
    assert (result.exit_code, json.loads(result.stdout)["feasible"]) == (ExitCode.OK, True)


@pytest.mark.parametrize(
    ("count", "words", "code"),
    [
        pytest.param(2, ("--check",), ExitCode.OK, id="feasible and checked"),
        pytest.param(100, (), ExitCode.OK, id="infeasible, which is an answer"),
        pytest.param(100, ("--check",), ExitCode.CHECK_FAILED, id="infeasible and checked"),
    ],
)
def test_it_exits_with_the_code_for(
    scene: Scene, tmp_path: Path, count: int, words: tuple[str, ...], code: ExitCode
) -> None:
    file = write_request(tmp_path, groups=[{"name": "w", "count": count}])
    assert place_in(scene, file, *words).code == code


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        pytest.param({"required": "rack"}, "no-level", id="a tier that the tree lacks"),
        pytest.param(
            {"groups": [{"name": "w", "count": 3, "slices": [{"size": 2, "tier": "leaf"}]}]},
            "bad-slice",
            id="sizes that do not divide",
        ),
    ],
)
def test_it_gives_the_reason_for(
    scene: Scene, tmp_path: Path, spec: dict[str, Any], kind: str
) -> None:
    ran = place_in(scene, write_request(tmp_path, **spec), "-o", "json")
    assert (ran.code, ran.document["reason"]["kind"]) == (ExitCode.OK, kind)


def test_it_shows_a_placement_by_domain(scene: Scene, tmp_path: Path) -> None:
    ran = place_in(scene, write_request(tmp_path, groups=[{"name": "w", "count": 6}]))
    head, header, *rows = ran.out.splitlines()
    assert head == "feasible: 6 pods within one core; no better placement exists"
    assert header.split() == ["GROUP", "PODS", "DOMAIN", "NODES"]
    assert [row.split()[:2] for row in rows[:2]] == [["w", "0-3"], ["w", "4-5"]]
    assert rows[2].startswith("not lower: ")
    assert rows[2].endswith(": 4 of 6 slots; needs 2 more")


def test_it_shows_why_there_is_no_placement_and_what_would_help(
    scene: Scene, tmp_path: Path
) -> None:
    groups = [{"name": "w", "count": 6, "required": "leaf"}]
    ran = place_in(scene, write_request(tmp_path, groups=groups))
    lines = ran.out.splitlines()
    assert lines[0] == "infeasible: no-fit, tier leaf, 4 of 6 pods fit"
    assert lines[1] == "feasible with required tier core instead of leaf: within one core"
    assert "4 of 6 slots; needs 2 more" in ran.out


def test_a_refusal_names_the_selector_once_for_all_domains(scene: Scene, tmp_path: Path) -> None:
    groups = [{"name": "w", "count": 4, "node_selector": {"pool": ["h100", "h200"]}}]
    ran = place_in(scene, write_request(tmp_path, groups=groups))
    num = len(scene.hosts)
    head, *rows = ran.out.splitlines()
    assert head == f"infeasible: excluded, {num} nodes excluded by selector pool=h100|h200"
    leaves = [row.split() for row in rows if row.startswith("all ")]
    assert [" ".join(row[2:]) for row in leaves] == ["infeasible room for 0 of 4 slots"]


def test_a_refusal_says_that_no_node_list_gives_the_capacity(scene: Scene, tmp_path: Path) -> None:
    fits = [{"name": "w", "count": 2}]
    refused = [{"name": "w", "count": 2, "request": {"slots": 8}}]
    assert "node list" not in place_in(scene, write_request(tmp_path, groups=fits)).err
    ran = place_in(scene, write_request(tmp_path, groups=refused))
    assert ran.err == (
        "note: no node list: each node counts as one slot; --nodes gives their capacity\n"
    )


def test_it_says_which_bound_to_leave_out(scene: Scene, tmp_path: Path) -> None:
    file = write_request(tmp_path, groups=[{"name": "w", "count": 6}], max_domains={"leaf": 1})
    assert "\nfeasible without max_domains: within one core\n" in place_in(scene, file).out


def test_it_shows_pods_that_stay_pending(scene: Scene, tmp_path: Path) -> None:
    groups = [{"name": "w", "count": 6, "min": 2, "required": "leaf"}]
    ran = place_in(scene, write_request(tmp_path, groups=groups))
    assert ran.out.startswith("feasible: 4 of 6 pods within one leaf")
    assert "(pending)" in ran.out.splitlines()[-1]


@pytest.mark.parametrize("num_gangs", [1, 2])
@pytest.mark.parametrize("output", ["text", "wide", *HostListFormat])
@pytest.mark.parametrize("side", ["command", "server"])
def test_every_answer_names_the_gangs_that_it_preempts(
    scene: Scene, tmp_path: Path, num_gangs: int, output: str, side: str
) -> None:
    tree, hosts = derive_truth(scene.damaged), scene.hosts
    gangs: list[dict[str, Any]] = [
        {"gang": f"old-{at}", "pods": [{"node": node} for node in hosts[at::num_gangs]]}
        for at in range(num_gangs)
    ]
    running = tmp_path / "running.yaml"
    running.write_text(json.dumps(gangs))
    groups = [{"name": "w", "count": len(hosts)}]
    spec = {"groups": groups, "priority": 100, "preemption": "topologyFirst"}
    file = write_request(tmp_path, **spec)
    if side == "server":
        state = PublishedState(build_snapshot(tree, {}, read_running_gangs(running)))
        with serving(state) as server:
            ran = run("place", "-f", file, "--server", server.address, "-o", output)
    else:
        ran = place_in(scene, file, "--running", running, "-o", output)
    what = "1 gang is" if num_gangs == 1 else "2 gangs are"
    names = ", ".join(row["gang"] for row in gangs)
    cost = f"feasible after {what} preempted ({len(hosts)} pods): {names}"
    if output in {"text", "wide"}:
        head, answer = ran.out.splitlines()[:2]
        assert (head, answer.partition(" within")[0]) == (cost, f"{len(hosts)} pods")
    else:
        assert f"warning: {cost}\n" in ran.err
        assert "preempted" not in ran.out


def test_it_warns_of_a_node_whose_place_is_unknown(scene: Scene, tmp_path: Path) -> None:
    listed = yaml.safe_load(scene.nodes().read_text())
    listed["nodes"].append(listed["nodes"][0] | {"name": "node-0099", "ids": []})
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text(yaml.safe_dump(listed))
    selector = {"kubernetes.io/hostname": "node-0099"}
    groups = [{"name": "w", "count": 1, "node_selector": selector}]
    ran = place_in(scene, write_request(tmp_path, groups=groups), "--nodes", nodes)
    assert ran.code == ExitCode.OK, ran.err
    assert ran.out.splitlines()[-1].split() == ["w", "0", "(no", "place)", "node-0099"]
    assert "not lower" not in ran.out  # no tier is below a node
    assert "note: node-0099 has no place in the tree: " in ran.err


def test_it_warns_of_the_faulty_cables_of_the_chosen_nodes_alone(tmp_path: Path) -> None:
    words = (
        "--hosts",
        32,
        "--rails",
        4,
        "--lose-links",
        "6%",
        "--swap",
        1,
        "--seed",
        1,
        "--sysfs-hosts",
        0,
    )
    made = run("simulate", "fabric", *words, "--out", tmp_path / "fabric")
    assert made.code == ExitCode.OK
    sources = ("--reports", tmp_path / "fabric" / "reports")
    expected: dict[str, set[str]] = {}
    for row in run("findings", *sources, "-o", "json").document:
        if row["kind"] in {"down-port", "wrong-rail"}:
            for end in row["evidence"]["ports"]:
                fault = f"warning: {end['device']}: {row['kind']} {end['port']}"
                expected.setdefault(end["device"], set()).add(fault)
    rewired = next(node for node, rows in expected.items() if "wrong-rail" in str(rows))
    assert "node-0002" not in expected
    for node in (rewired, "node-0001", "node-0002"):
        ran = run("place", f"--sbatch=--nodes=1 --nodelist={node}", *sources)
        warned = {row for row in ran.err.splitlines() if row.startswith("warning: ")}
        assert warned == expected.get(node, set())
    ran = run("place", "--sbatch=--nodes=32", *sources)
    warnings = [row for row in ran.err.splitlines() if row.startswith("warning: ")]
    assert len(warnings) == 4
    assert warnings[3].endswith(" at these nodes; see `toponaut findings`")


def test_it_escapes_names_that_would_act_on_a_terminal(scene: Scene, tmp_path: Path) -> None:
    groups = [{"name": "w\n\x1b[31m\u202e", "count": 2}]
    ran = place_in(scene, write_request(tmp_path, groups=groups))
    assert ran.code == ExitCode.OK
    assert all(line.isprintable() for line in ran.out.splitlines())
    assert len(ran.out.splitlines()) == 3


def test_a_host_list_is_the_whole_output_and_fails_without_a_placement(
    scene: Scene, tmp_path: Path
) -> None:
    fits = write_request(tmp_path, groups=[{"name": "w", "count": 3}])
    ran = place_in(scene, fits, "-o", "nodelist")
    assert (ran.code, ran.out, ran.err) == (ExitCode.OK, "node-[0001-0003]\n", "")
    assert "node-[0001-0003]" in place_in(scene, fits).out
    assert "node-0001 node-0002 node-0003" in place_in(scene, fits, "-o", "wide").out
    none = write_request(tmp_path, groups=[{"name": "w", "count": 5000}])
    ran = place_in(scene, none, "-o", "hostfile")
    assert (ran.code, ran.out) == (ExitCode.CHECK_FAILED, "")
    assert ran.err.startswith("infeasible: ")


def test_it_replaces_the_preset_of_the_request(scene: Scene, tmp_path: Path) -> None:
    file = write_request(tmp_path, strategies=[["spine", "leaf"]])
    both = [
        place_in(scene, file, "--preset", preset, "-o", "json").document["objective"]
        for preset in ("optimal", "koordinator")
    ]
    assert list(both[0]) != list(both[1])


def test_it_counts_running_pods(scene: Scene, tmp_path: Path) -> None:
    nodes = sorted(scene.hosts)
    running = tmp_path / "running.yaml"
    rows = [{"gang": "other", "pods": [{"node": node} for node in nodes[:13]]}]
    running.write_text(json.dumps({"running": rows}))
    ran = place_in(scene, write_request(tmp_path), "--running", running, "-o", "json")
    assert not ran.document["feasible"]
    anchors = tmp_path / "anchors.yaml"
    anchors.write_text(json.dumps([{"gang": "self", "pods": [{"node": nodes[0]}]}]))
    file = write_request(tmp_path, groups=[{"name": "w", "count": 3}])
    ran = place_in(scene, file, "--running", anchors, "-o", "json")
    home = place_in(scene, write_request(tmp_path), "-o", "json").document["assignment"]["w"]
    assert set(ran.document["assignment"]["w"]) | {nodes[0]} == set(home)


def test_it_puts_new_pods_into_the_slices_of_running_pods(scene: Scene, tmp_path: Path) -> None:
    file = write_request(tmp_path, groups=[{"name": "w", "count": 4}])
    leaf_nodes = place_in(scene, file, "-o", "json").document["assignment"]["w"]
    other_node = next(node for node in sorted(scene.hosts) if node not in leaf_nodes)
    slices = [{"size": 2, "tier": "leaf", "indexed": True}]
    group = {"name": "w", "count": 2, "slices": slices}
    file = write_request(tmp_path, groups=[group], across_islands=True)
    assignments = []
    for indices in ((0, 3), (3, 0)):
        pods = [
            {"node": node, "indices": [index]}
            for node, index in zip((leaf_nodes[0], other_node), indices, strict=True)
        ]
        running = tmp_path / "running.yaml"
        running.write_text(json.dumps([{"gang": "self", "pods": pods}]))
        ran = place_in(scene, file, "--running", running, "-o", "json")
        assignments.append(ran.document["assignment"]["w"])
    assert assignments[0] == list(reversed(assignments[1]))
    assert assignments[0][0] in leaf_nodes


def test_it_reports_skipped_input(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, PAIRS)
    (scene.reports() / "bad.yaml").write_bytes(b"")
    file = write_request(tmp_path, groups=[{"name": "w", "count": 2}])
    ran = run("place", "-f", file, "--reports", scene.reports(), "-o", "json")
    assert (ran.code, ran.document["feasible"]) == (ExitCode.SKIPPED, True)
    assert "skipped:" in ran.err


BAD_REQUESTS = [
    pytest.param(b"", "got an empty file", id="empty"),
    pytest.param(b'{"apiVersion": "toponaut.io', "not YAML", id="cut in the middle"),
    pytest.param(
        b"- 1\n",
        "expected a placement request, or the manifest of a workload, got a list",
        id="a list",
    ),
    pytest.param(b"a: 1\n---\nb: 2\n", "line 1: expected an object with apiV", id="two documents"),
    pytest.param(
        b"kind: Job\napiVersion: batch/v1\n", "spec.template.spec: is missing", id="an empty Job"
    ),
    pytest.param(
        b"kind: PlacementRequest\napiVersion: toponaut.io/v9\n",
        "apiVersion: expected kind PlacementRequest of toponaut.io/v1alpha1",
        id="another version",
    ),
    pytest.param(b'kind: "a\\e[31m"\napiVersion: x\n', r"a\x1b[31m", id="a hostile kind"),
]


@pytest.mark.parametrize(("raw", "why"), BAD_REQUESTS)
def test_it_refuses_a_file_that_is(scene: Scene, tmp_path: Path, raw: bytes, why: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_bytes(raw)
    ran = place_in(scene, file)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert ran.err.startswith(f"error: {file}")
    assert why in ran.err
    assert ran.err.rstrip("\n").isprintable()


BAD_SPECS = [
    pytest.param(
        {"groups": [{"name": "w", "count": 0}]}, "groups[0].count: expected a pos", id="0"
    ),
    pytest.param(
        {"groups": [{"name": "w", "count": 1, "x\n\x1b": 1}]},
        r"groups[0].x\n\x1b: is not a known field",
        id="a hostile field",
    ),
]


@pytest.mark.parametrize(("spec", "why"), BAD_SPECS)
def test_it_names_the_file_and_the_field_of(
    scene: Scene, tmp_path: Path, spec: dict[str, Any], why: str
) -> None:
    file = write_request(tmp_path, **spec)
    ran = place_in(scene, file)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert ran.err.startswith(f"error: {file}: {why}")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(b"", "expected one document", id="empty"),
        pytest.param(b"- {gang: a}\n", "0.pods: ", id="a gang without pods"),
        pytest.param(b"- {gang: a, pods: [], color: red}\n", "color", id="an unknown field"),
        pytest.param(
            b"- {gang: a, pods: [{node: n, count: 2, indices: [1]}]}\n",
            "0.pods.0.indices: expected 2, got 1",
            id="fewer indices than pods",
        ),
    ],
)
def test_it_refuses_running_gangs_that_are(
    scene: Scene, tmp_path: Path, content: bytes, why: str
) -> None:
    running = tmp_path / "running.yaml"
    running.write_bytes(content)
    ran = place_in(scene, write_request(tmp_path), "--running", running)
    assert ran.code == ExitCode.USAGE
    assert ran.err.startswith(f"error: {running}: ")
    assert why in ran.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param((), "name a source", id="no source"),
        pytest.param(
            ("--kube", "--kubeconfig", "absent"),
            "kubeconfig absent",
            id="a cluster without credentials",
        ),
        pytest.param(
            ("--server", "10.0.0.1:1"),
            "is not a loopback address",
            id="a server on another machine",
        ),
        pytest.param(
            ("--server", "127.0.0.1:1"), "no server answers", id="a server that is not running"
        ),
        pytest.param(("--server", "x", "TREE"), "places in its own tree", id="a server and a tree"),
    ],
)
def test_it_refuses_as_wrong_usage(
    scene: Scene, tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    if words[-1:] == ("TREE",):
        words = (*words[:-1], "--tree", str(scene.root / "tree.json"))
    ran = run("place", "-f", write_request(tmp_path), *words)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert why in ran.err


def test_it_says_that_arguments_of_volcanos_plugin_have_no_effect(
    scene: Scene, tmp_path: Path
) -> None:
    options = {"arguments": {"weight": 10}}
    ran = place_in(scene, write_request(tmp_path, preset="volcano", options=options))
    assert ran.code == ExitCode.SKIPPED
    assert "ignored: options.arguments" in ran.err
    assert "ignored" not in place_in(scene, write_request(tmp_path, preset="volcano")).err


def test_it_says_that_no_node_has_a_place_and_names_the_finding(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    reports = scene.reports()
    for file in reports.glob("*sweep*"):
        file.unlink()
    words = ("--reports", reports, "--nodes", scene.nodes(), "--sbatch", "--nodes=4")
    ran = run("place", *words)
    assert ran.out == "infeasible: no node has a place in the tree\n"
    assert "note: plane-unknown: No cable of the compute network is known" in ran.err
    ran = run("place", *words, "-o", "hostfile")
    assert ran.out == ""
    assert "infeasible: no node has a place in the tree" in ran.err


def test_an_answer_to_sbatch_names_the_option_that_was_given(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    words = ("--reports", scene.reports(), "--nodes", scene.nodes())
    ran = run("place", *words, "--sbatch", "--nodes=9 --switches=1")
    assert "max_domains" not in ran.out + ran.err
    assert "feasible without --switches=1: within one core" in ran.out
    rows = [row.split()[0] for row in ran.out.splitlines() if " infeasible " in row]
    assert {row.partition("-")[0] for row in rows} == {"leaf"}
    spread = run("place", *words, "--sbatch", "--nodes=9 --switches=2")
    assert "needs 9, but no placement in it meets --switches=2\n" in spread.out
