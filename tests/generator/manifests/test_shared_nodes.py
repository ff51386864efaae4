"""`toponaut place` with pods that take shares of GPUs and ports of nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.cli.exit_codes import ExitCode
from tests.generator.manifests.scenes import GPU, job, kubeflow_job, pod, pod_spec
from tests.generator.placement.documents import racks
from tests.generator.scenes import Ran, kube_node, run
from topology.model.tree import render_tree

HALVES = {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "4"}
MEMORY = {"gpu-memory": "20000"}


class SharedNodes:
    """Two racks of one node with eight GPUs each."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.tree = self._write("tree.json", render_tree(racks(1, 1)))
        self.nodes = self._write("nodes.json", self._list_nodes({}))

    def label(self, **labels: str) -> None:
        """Add labels to both nodes."""
        self.nodes = self._write("nodes.json", self._list_nodes(labels))

    def place(self, manifest: dict[str, Any], *words: object) -> Ran:
        sources = words or ("--tree", self.tree, "--nodes", self.nodes)
        return run("place", "-f", self._write("job.json", manifest), *sources, "-o", "json")

    def run_in_rack(self, count: int, marks: dict[str, str], *, used: int = 0) -> Ran:
        """Place pods of KAI in one rack; another gang uses GPUs of each node."""
        template = {"metadata": {"annotations": marks}, "spec": {"schedulerName": "kai-scheduler"}}
        made = job(parallelism=count, template=template)
        made["metadata"]["annotations"] = {
            "kai.scheduler/topology-required-placement": "rack",
            "kai.scheduler/batch-min-member": str(count),
        }
        pods = [{"node": node, "request": {GPU: used}} for node in ("n0", "n1")]
        running = self._write("running.json", [{"gang": "other", "pods": pods}])
        sources = ("--tree", self.tree, "--nodes", self.nodes)
        return self.place(made, *sources, *(("--running", running) if used else ()))

    def _list_nodes(self, labels: dict[str, str]) -> dict[str, Any]:
        items = [kube_node(name) for name in ("n0", "n1")]
        for item in items:
            item["metadata"]["labels"] |= labels
        return {"apiVersion": "v1", "kind": "List", "items": items}

    def _write(self, name: str, document: object) -> Path:
        path = self._root / name
        path.write_text(json.dumps(document), encoding="utf-8")
        return path


@pytest.fixture
def shared(tmp_path: Path) -> SharedNodes:
    return SharedNodes(tmp_path)


@pytest.mark.parametrize(("count", "is_feasible"), [(4, True), (5, False)])
def test_half_of_four_gpus_fits_a_node_of_eight_four_times(
    shared: SharedNodes, count: int, *, is_feasible: bool
) -> None:
    ran = shared.run_in_rack(count, HALVES)
    assert (ran.code, ran.document["feasible"]) == (ExitCode.OK, is_feasible)


@pytest.mark.parametrize(("count", "is_feasible"), [(2, True), (3, False)])
def test_running_pods_take_their_gpus_first(
    shared: SharedNodes, count: int, *, is_feasible: bool
) -> None:
    assert shared.run_in_rack(count, HALVES, used=3).document["feasible"] is is_feasible


def test_pods_of_the_file_that_run_take_their_gpus_and_ports(shared: SharedNodes) -> None:
    other = pod("other") | {"spec": pod_spec(nodeName="n0")}
    container = {"ports": [{"hostPort": 80}]}
    template: dict[str, Any] = {
        "metadata": {"annotations": HALVES},
        "spec": {"schedulerName": "kai-scheduler", "containers": [container]},
    }
    marks = {"labels": {"batch.kubernetes.io/job-name": "train"}}
    own = pod("train-0", **marks) | {"spec": template["spec"] | {"nodeName": "n1"}}
    own["metadata"]["annotations"] = HALVES
    for count, documents, nodes in (
        (1, [], {"n0", "n1"}),
        (1, [other], {"n1"}),
        (2, [own], {"n0"}),
        (2, [own, other], None),
    ):
        made = {"kind": "List", "items": [job(parallelism=count, template=template), *documents]}
        found = shared.place(made | {"apiVersion": "v1"}).document
        assert found["feasible"] is (nodes is not None)
        assert set(found["assignment"].get("main", [])) <= (nodes or set())


@pytest.mark.parametrize(
    ("labels", "most", "code"),
    [
        pytest.param({"nvidia.com/gpu.memory": "81920"}, 32, ExitCode.OK, id="known memory"),
        pytest.param({}, 8, ExitCode.SKIPPED, id="unknown memory: whole GPUs, which is said"),
    ],
)
def test_shares_by_memory_need_the_memory_of_nodes(
    shared: SharedNodes, labels: dict[str, str], most: int, code: ExitCode
) -> None:
    shared.label(**labels)
    fits, other = shared.run_in_rack(most, MEMORY), shared.run_in_rack(most + 1, MEMORY)
    assert (fits.document["feasible"], other.document["feasible"]) == (True, False)
    assert (fits.code, other.code) == (code, code)
    is_said = "ignored: nodes n0, n1: without the label nvidia.com/gpu.memory" in fits.err
    assert is_said is (code is ExitCode.SKIPPED)


def test_a_port_of_the_host_keeps_pods_of_one_node_apart(shared: SharedNodes) -> None:
    container = {"ports": [{"containerPort": 2222}], "resources": {"requests": {GPU: 1}}}
    spec = pod_spec(containers=[container], hostNetwork=True)
    for count, is_feasible in ((2, True), (3, False)):
        ran = shared.place(job(parallelism=count, template={"spec": spec}))
        assert (ran.code, ran.document["feasible"]) == (ExitCode.OK, is_feasible)


def test_a_server_counts_no_shares(shared: SharedNodes) -> None:
    template = {"metadata": {"annotations": HALVES}, "spec": {"schedulerName": "kai-scheduler"}}
    ran = shared.place(job(template=template), "--server", "127.0.0.1:1")
    assert ran.code == ExitCode.USAGE
    assert "nvidia.com/gpu.4x0.5: a server does not count shares of GPUs" in ran.err


def test_a_server_counts_no_ports(shared: SharedNodes) -> None:
    container = {"ports": [{"hostPort": 80}]}
    ran = shared.place(
        job(template={"spec": pod_spec(containers=[container])}), "--server", "127.0.0.1:1"
    )
    assert "ignored: groups[0]: ports of the host are not counted: host-port.TCP.80" in ran.err


def test_a_field_without_effect_is_printed_with_its_reason(shared: SharedNodes) -> None:
    made = kubeflow_job("PyTorchJob", {"Worker": 2}, runPolicy={"cleanPodPolicy": "All"})
    made["metadata"]["labels"] = {"volcano.sh/unheard-of": "x", "app": "train"}
    ran = shared.place(made)
    said = ran.err.splitlines()
    assert ran.code == ExitCode.SKIPPED
    title = "PyTorchJob 'train' (line 1)"
    assert f"ignored: {title}: metadata.labels['volcano.sh/unheard-of']: Toponaut" in ran.err
    assert (
        f"ignored, no effect on placement: {title}: spec.runPolicy.cleanPodPolicy: "
        "says how pods end, and what follows"
    ) in said


def test_the_answer_names_shares_as_a_request_can(shared: SharedNodes, tmp_path: Path) -> None:
    template = {"metadata": {"annotations": HALVES}, "spec": {"schedulerName": "kai-scheduler"}}
    printed = shared.place(job(template=template), "--translate")
    file = tmp_path / "request.yaml"
    file.write_text(yaml.safe_dump(printed.document), encoding="utf-8")
    ran = run("place", "-f", file, "--tree", shared.tree, "--nodes", shared.nodes, "-o", "json")
    assert (ran.code, ran.document["feasible"]) == (ExitCode.OK, True)
