"""`toponaut lint`: files, folders, stdin, nodes, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from generator.cli.exit_codes import ExitCode
from generator.cli.group import cli
from tests.generator.scenes import run

GOOD = {
    "apiVersion": "topology.volcano.sh/v1alpha1",
    "kind": "HyperNode",
    "metadata": {"name": "leaf"},
    "spec": {
        "tier": 1,
        "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "^n[12]$"}}}],
    },
}
TOP = {
    **GOOD,
    "metadata": {"name": "top"},
    "spec": {
        "tier": 2,
        "members": [{"type": "HyperNode", "selector": {"exactMatch": {"name": "gone"}}}],
    },
}
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}


def write(path: Path, *documents: object) -> Path:
    path.write_text("\n---\n".join(json.dumps(row) for row in documents) + "\n")
    return path


def test_it_checks_lists_folders_and_stdin_as_one_set(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", {"kind": "List", "apiVersion": "v1", "items": [GOOD, OTHER]})
    write(tmp_path / "b.json", OTHER)
    assert run("lint", tmp_path, "--check").out == "no problems in 1 HyperNode\n"
    result = CliRunner().invoke(
        cli, ["lint", str(tmp_path), "-", "--check", "-o", "json"], input=json.dumps(TOP) + "\n"
    )
    assert result.exit_code == ExitCode.CHECK_FAILED
    assert json.loads(result.stdout) == [
        {
            "kind": "missing-child",
            "subject": "top",
            "message": "lists HyperNode gone, which does not exist",
            "effect": "the scheduler crashes at the next job with a topology",
        }
    ]


def test_it_checks_patterns_on_the_nodes(tmp_path: Path) -> None:
    file = write(tmp_path / "a.yaml", GOOD)
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text("nodes: [{name: n1}, {name: n2}, {name: n3}]\n")
    ran = run("lint", file, "--nodes", nodes, "-o", "json")
    assert ran.code == ExitCode.OK
    assert [row["kind"] for row in ran.document] == ["unlisted-nodes"]


@pytest.mark.parametrize(
    "text",
    [
        "kind: [\n",
        json.dumps({**GOOD, "spec": {"members": []}}) + "\n",
        json.dumps({**GOOD, "metadata": {"name": "\x1b[2J"}}) + "\n",
    ],
)
def test_an_object_that_volcano_refuses_is_a_problem(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    ran = run("lint", file, "--check")
    assert ran.code == ExitCode.CHECK_FAILED
    assert "invalid-object" in ran.out
    assert "\x1b" not in ran.out


def test_it_ends_without_hypernodes(tmp_path: Path) -> None:
    ran = run("lint", write(tmp_path / "a.yaml", OTHER))
    assert (ran.code, ran.out) == (ExitCode.NOTHING, "")


@pytest.mark.parametrize("words", [(), ("--kube", "x.yaml"), ("missing.yaml",)])
def test_it_refuses_wrong_usage(words: tuple[str, ...]) -> None:
    assert run("lint", *words).code == ExitCode.USAGE


def node(name: str, *taints: str, **labels: str) -> dict[str, object]:
    return {"name": name, "taints": [*taints], "labels": labels}


ROLE = "node-role.kubernetes.io/"
OTHERS = [
    pytest.param(node("m", f"{ROLE}control-plane:NoSchedule"), False, id="kubeadm"),
    pytest.param(node("m", f"{ROLE}master:NoSchedule"), False, id="an older kubeadm"),
    pytest.param(node("m", f"{ROLE}etcd=true:NoExecute"), False, id="RKE"),
    pytest.param(
        node("m", "CriticalAddonsOnly=true:NoExecute", **{f"{ROLE}control-plane": "true"}),
        False,
        id="k3s, with a taint of another name",
    ),
    pytest.param(node("m", **{f"{ROLE}control-plane": ""}), True, id="one that runs jobs"),
    pytest.param(
        node("m", f"{ROLE}control-plane:PreferNoSchedule"), True, id="one with a soft taint"
    ),
    pytest.param(node("m", "nvidia.com/gpu=present:NoSchedule"), True, id="a tainted GPU node"),
]


@pytest.mark.parametrize(("other", "is_unlisted"), OTHERS)
def test_a_tainted_node_of_the_control_plane_needs_no_hypernode(
    tmp_path: Path, other: dict[str, object], *, is_unlisted: bool
) -> None:
    file = write(tmp_path / "a.yaml", GOOD)
    nodes = write(tmp_path / "nodes.yaml", {"nodes": [node("n1"), node("n2"), other]})
    ran = run("lint", file, "--nodes", nodes, "-o", "json")
    assert [row["kind"] for row in ran.document] == ["unlisted-nodes"] * is_unlisted
