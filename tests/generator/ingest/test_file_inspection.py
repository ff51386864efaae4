"""`inspect`: the format and counts of files, detected by content."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from generator.cli.exit_codes import ExitCode
from generator.ingest.file_inspection import inspect_bytes
from tests.effort import examples
from tests.generator.scenes import PAIRS, RAILS, Scene, run
from tests.repository import ROOT
from topology.model.ids import IdKind
from topology.reports.fabric_status import FabricStatus, render_fabric
from topology.synthetic import FabricKind, SyntheticSpec, sweep_devices

SMALL = SyntheticSpec(FabricKind.FAT_TREE, 8, radix=4)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene.of(tmp_path_factory.mktemp("rails"), RAILS)


def inspected(*files: Path) -> list[dict[str, object]]:
    ran = run("inspect", *files, "-o", "json")
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    document: list[dict[str, object]] = ran.document
    return document


def test_it_counts_the_devices_and_links_of_a_sweep(scene: Scene) -> None:
    (found,) = inspected(scene.sweep())
    wiring = scene.damaged.wiring
    devices = sweep_devices(scene.damaged)
    assert found["format"] == "ibnetdiscover"
    assert found["problems"] == []
    assert found["counts"] == {
        "switches": len(wiring.switches),
        "cas": 4 * len(wiring.hosts),
        "aggregation_nodes": 0,
        "routers": 0,
        "devices": len(devices),
        "ports": 2 * len(wiring.cables),
        "neighbors": 2 * len(wiring.cables),
        "links": len(wiring.cables),
        "bad_lines": 0,
    }


def test_it_lists_the_cas_that_name_no_host(scene: Scene) -> None:
    text = scene.sweep_text().replace(
        "node-0001 mlx5_0", "MT4129 ConnectX7   Mellanox Technologies"
    )
    (found,) = inspected(scene.write("nameless.txt", text))
    host = next(host for host in scene.damaged.wiring.hosts if host.name == "node-0001")
    assert found["unresolved"] == [host.nics[0].guid]


def test_it_detects_formats_by_content(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, PAIRS)
    store = scene.store()
    run("apply", "--store", store)
    scene.write("tree.txt", run("tree", "--reports", store / "neighborreports", "-o", "json").out)
    request = {"apiVersion": "toponaut.io/v1alpha1", "kind": "PlacementRequest",
               "spec": {"groups": [{"name": "g", "count": 2}]}}  # fmt: skip
    captures = scene.captures()
    host = scene.hosts[0]
    files = [
        captures / f"{host}.neighbors.json0",
        captures / f"{host}.chassis.json0",
        store / "neighborreports" / f"{host}.yaml",
        next((store / "hypernodes").iterdir()),
        scene.nodes(),
        scene.kube_nodes(),
        scene.kube_nodes(form="yaml"),
        tmp_path / "tree.txt",
        scene.write("request", json.dumps(request)),
    ]
    assert [row["format"] for row in inspected(*files)] == [
        "lldpcli-neighbors",
        "lldpcli-chassis",
        "NeighborReport",
        "HyperNode",
        *["nodes"] * 3,
        "TopologyTree",
        "PlacementRequest",
    ]


@pytest.mark.parametrize(
    ("case", "form", "counts"),
    [
        pytest.param("opensm/subnet-lst", "subnet-lst", {"cas": 2, "links": 4}, id="of opensm"),
        pytest.param("ibdiagnet/lst", "subnet-lst", {"cas": 1, "links": 1}, id="lst of ibdiagnet"),
        pytest.param(
            "ibdiagnet/db-csv", "ibdiagnet-db_csv", {"aggregation_nodes": 1, "bad_lines": 7},
            id="db_csv of ibdiagnet",
        ),
        pytest.param(
            "ibdiagnet/net-dump", "ibdiagnet-net_dump", {"switches": 2, "cas": 3},
            id="net_dump of ibdiagnet",
        ),
        pytest.param(
            "ibnetdiscover/form-ibdiagnet", "ibnetdiscover", {"bad_lines": 0},
            id="ibnetdiscover of ibdiagnet",
        ),
        pytest.param("cabling/own-csv", "cabling-csv", {}, id="a plan in CSV"),
        pytest.param("cabling/netbox-api", "cabling-netbox-json", {}, id="a plan of NetBox"),
        pytest.param("cabling/netbox-list", "cabling-netbox-csv", {}, id="a list of NetBox"),
        pytest.param("cabling/ptm-dot", "cabling-dot", {}, id="a plan of PTM"),
        pytest.param("cabling/ibdm-topo", "cabling-ibdm", {}, id="a plan of ibdm"),
        pytest.param("lldp_mib/lldp-v2", "snmpwalk", {}, id="a walk of a switch"),
    ],
)  # fmt: skip
def test_it_recognises_a_file(case: str, form: str, counts: dict[str, int]) -> None:
    (file,) = (ROOT / "fixtures" / case).glob("input.*")
    found = inspect_bytes(file.read_bytes(), source="x")
    assert found.format == form
    assert {key: found.counts[key] for key in counts} == counts


GPUS = sorted((ROOT / "fixtures" / "nvidia_smi").glob("*/input.*"))
HEADLESS = {"nothing", "without-header"}


@pytest.mark.parametrize("file", [file for file in GPUS if file.parent.name not in HEADLESS])
def test_it_recognises_the_output_of_nvidia_smi(file: Path) -> None:
    assert inspect_bytes(file.read_bytes(), source="x").format == "nvidia-smi"


def test_it_counts_the_sweepers_of_a_fabric_object() -> None:
    sweeper = {"subnet": "fe80000000000000", "node": "n", "device": "d", "port": 1, "role": "spare"}
    document = render_fabric(FabricStatus.model_validate({"sweepers": [sweeper]}))
    found = inspect_bytes(json.dumps(document).encode(), source="x")
    assert (found.format, found.counts["sweepers"], found.problems) == ("Fabric", 1, ())


def test_it_refuses_a_damaged_file_when_strict_and_reports_every_bad_line(scene: Scene) -> None:
    bad = "".join(f"[{number}]\t???\n" for number in range(150))
    damaged, whole = scene.write("damaged.txt", scene.sweep_text() + bad), scene.sweep()
    lax = run("inspect", damaged, "-o", "json")
    assert (lax.code, lax.document[0]["counts"]["bad_lines"]) == (ExitCode.SKIPPED, 150)
    assert len(lax.document[0]["problems"]) == 100
    strict = run("inspect", "--strict", damaged, whole, "-o", "json")
    assert strict.code == ExitCode.SKIPPED
    refused, clean = strict.document
    assert (refused["format"], refused["counts"]) == ("ibnetdiscover", {"bad_lines": 150})
    assert len(refused["problems"]) == 150
    assert clean["counts"]["bad_lines"] == 0
    text = run("inspect", "--strict", damaged)
    assert (text.code, text.err.count("port line without a peer")) == (ExitCode.NOTHING, 150)


def test_it_refuses_damage_of_any_format_when_strict(scene: Scene) -> None:
    (file,) = (ROOT / "fixtures" / "opensm" / "damaged").glob("input.*")
    ran = run("inspect", "--strict", file, scene.nodes(), "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert ran.document[0]["counts"] == {"bad_lines": 4}
    assert ran.document[1]["counts"]["nodes"]


def test_it_counts_the_parts_of_a_reported_sweep(scene: Scene) -> None:
    (found,) = inspected(next(scene.reports().glob("*.sweep.0.yaml")))
    assert found["counts"] == {"reports": 1, "sweep_parts": 1, "bad_documents": 0}


def test_it_counts_the_links_of_a_report(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, PAIRS)
    (found,) = inspected(scene.reports() / f"{scene.hosts[0]}.yaml")
    assert found["counts"] == {
        "reports": 1, "devices": 1, "ports": 2, "neighbors": 2, "links": 2, "bad_documents": 0,
    }  # fmt: skip


def test_it_answers_for_good_files_beside_bad_ones(scene: Scene) -> None:
    bad = scene.write("bad.bin", b"\x00\xff")
    ran = run("inspect", scene.sweep(), bad, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert [row["format"] for row in ran.document] == ["ibnetdiscover", "unknown"]
    assert f"{bad}: not UTF-8 at byte 1" in ran.document[1]["problems"]


def test_it_names_bad_files_in_text_form_on_stderr(scene: Scene) -> None:
    bad = scene.write("bad.bin", b"\x00\xff")
    ran = run("inspect", bad)
    assert ran.code == ExitCode.NOTHING
    assert ran.out == f"{bad}: unknown: 1 bad document\n"
    assert f"skipped: {bad}: not UTF-8" in ran.err


def test_it_names_each_problem_of_a_node_list_once(scene: Scene) -> None:
    nodes = scene.write("odd.yaml", "nodes: [{name: a}, {name: NO}]\n---\n!tagged x\n")
    ran = run("inspect", nodes, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert ran.document[0]["counts"] == {"nodes": 1}
    assert len(ran.document[0]["problems"]) == 2


@pytest.mark.parametrize("raw", [b"", b"\n \n"], ids=["empty", "blank"])
def test_it_reports_an_empty_file(scene: Scene, raw: bytes) -> None:
    ran = run("inspect", scene.write("empty", raw), "-o", "json")
    assert ran.code == ExitCode.NOTHING
    assert "empty" in ran.document[0]["problems"][0]


def test_it_prints_a_hostile_file_name_as_harmless_text(scene: Scene) -> None:
    ran = run("inspect", scene.write("red\x1b[31m\nline", "x"))
    assert "\x1b" not in ran.out + ran.err
    assert "red\\x1b[31m\\nline" in ran.out


@pytest.mark.parametrize("files", [[], ["missing"]], ids=["no file", "a missing file"])
def test_it_refuses_missing_files(tmp_path: Path, files: list[str]) -> None:
    ran = run("inspect", *(tmp_path / name for name in files))
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")


KINDS = ["HyperNode", "TopologyTree", "PlacementRequest", "NeighborReport", "Node", "List", "Pod"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["kind", "apiVersion", "metadata", "name", "spec", "tiers", "tier",
                         "domains", "parent", "nodes", "unplaced", "groups", "members", "type",
                         "selector", "device", "ports", "sweep", "items"]),
        inner | st.sampled_from(KINDS), max_size=4,
    ),
    max_leaves=16,
)  # fmt: skip
VERSIONS = st.sampled_from(["toponaut.io/v1alpha1", "topology.volcano.sh/v1alpha1", "v1"])
HEADS = st.sampled_from(
    [b"Switch 40 ", b"Ca 1 ", b"[1] ", b"vendid=", b'{"lldp":', b'{"local-chassis":', b"<lldp ",
     b"nodes: [", b"kind: Node\n", b"{", b"- ", b""]
)  # fmt: skip


@given(HEADS, st.binary(max_size=80))
@example(b"", b"%")
@example(b"", b"&a [*a]")
@example(b"", b"\xef\xbb\xbf{}")
@settings(max_examples=examples(200))
def test_it_returns_a_result_for_any_bytes(head: bytes, rest: bytes) -> None:
    found = inspect_bytes(head + rest, source="file")
    assert found.format
    assert all(str(problem).startswith("file") for problem in found.problems)


@given(VALUES, st.sampled_from(KINDS), VERSIONS)
@settings(max_examples=examples(200))
def test_it_returns_a_result_for_any_object(value: object, kind: str, version: str) -> None:
    body = value if isinstance(value, dict) else {"spec": value}
    raw = json.dumps({**body, "kind": kind, "apiVersion": version}).encode()
    found = inspect_bytes(raw, source="file")
    assert found.format != "unknown" or found.problems


@given(st.data())
@settings(max_examples=examples(60))
def test_it_survives_any_cut_and_any_flipped_byte_of_a_sweep(data: st.DataObject) -> None:
    raw = bytearray(_SWEEP)
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    found = inspect_bytes(bytes(raw[: data.draw(st.integers(1, len(raw)))]), source="file")
    assert found.counts.get("devices", 0) <= _NUM_DEVICES + 1


_SCENE = Scene.of(Path(), SMALL)
_SWEEP = _SCENE.sweep_text().encode()
_NUM_DEVICES = len(sweep_devices(_SCENE.damaged))


def test_it_counts_only_guids_as_unresolved(scene: Scene) -> None:
    guids = {
        found.value
        for device in sweep_devices(scene.damaged)
        for found in device.ids
        if found.kind is IdKind.NODE_GUID
    }
    text = scene.sweep_text().replace("node-0002 mlx5", "MT4129 mlx5")
    (found,) = inspected(scene.write("factory.txt", text))
    unresolved = found["unresolved"]
    assert isinstance(unresolved, list)
    assert set(unresolved) <= guids
