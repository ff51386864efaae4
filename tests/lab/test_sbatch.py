"""A genuine slurmctld decides which jobs start on an idle cluster, and on how many nodes.

`sbatch --test-only` asks it without starting anything. Toponaut's answers to the same options must
agree. Left out is what no version starts although it would fit (docs/requests.md), and what Slurm
22.05 counts otherwise than 25.11.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from generator.manifests.slurm.options import ALIASES, OPTIONS
from generator.outputs.slurm import build_switches, render_tree_config
from tests.effort import examples
from tests.generator.manifests.slurm.clusters import EQUAL, MIXED, Cluster, placed, used_nodes
from tests.generator.manifests.slurm.test_guides import GUIDES
from tests.lab.test_slurm import DEADLINE_S, await_topology, run_slurm, running_slurmctld
from tests.lab.wait import wait_until
from topology.model.errors import PlacementRequestError
from topology.model.name_ranges import expand_names

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120)]

SCRIPT = "#!/bin/sh\nsleep 60\n"
STARTS = re.compile(r"to start at .* on nodes (\S+)")
POOL = {
    "nodes": "-N1 -N2 -N3 -N4 -N5 -N7 -N8 -N9 -N2-4 -N3-20",
    "tasks": "-n3 -n8 -n10 -n16 -n24 -n40 -n64 -n100 -n200 -n300 -n448 -n512 -n513",
    "tasks_per_node": "--ntasks-per-node=1 --ntasks-per-node=2 --ntasks-per-node=8",
    "cpus": "-c2 -c4 -c7 -c10 -c16 -c32 -c64",
    "gpus": "--gpus=1 --gpus=6 --gpus=8 --gpus=16 --gpus=24 --gpus=33 --gpus=40 --gpus=64",
    "gpus_per_node": "--gpus-per-node=1 --gpus-per-node=4 --gpus-per-node=8 --gres=gpu:3",
    "gpus_per_task": "--gpus-per-task=1 --gpus-per-task=2 --gpus-per-task=4",
    "cpus_per_gpu": "--cpus-per-gpu=2 --cpus-per-gpu=8 --cpus-per-gpu=12",
    "memory": "--mem=10G --mem=60G --mem=300G --mem=0 --mem-per-cpu=1G --mem-per-cpu=10G",
    "gpu_memory": "--mem-per-gpu=10G --mem-per-gpu=60G",
    "exclusive": "--exclusive",
    "exclude": "--exclude=a1 --exclude=b[1-2]",
}
LEFT_OUT = (
    {"tasks_per_node", "tasks"},  # fewer tasks than tasks of a node
    {"gpus_per_node", "gpus_per_task"},
    {"cpus_per_gpu", "tasks"},  # more tasks than CPUs of the GPUs
    {"cpus_per_gpu", "tasks_per_node"},
    {"cpus_per_gpu", "cpus"},  # refused
    {"memory", "gpu_memory"},
    {"tasks_per_node", "gpus"},  # before 23.11 otherwise
    {"gpus", "gpus_per_task"},
    {"gpus", "gpus_per_node"},
)
NEEDS = {
    "gpus_per_task": {"tasks"},
    "cpus_per_gpu": {"gpus", "gpus_per_node"},
    "gpu_memory": {"gpus", "gpus_per_node"},
}
"""Without one of these, versions differ in whether they refuse an option."""


def draw_options(rng: Random, *, excludes: bool) -> str:
    """Draw up to four options that versions of Slurm read alike."""
    names = [name for name in POOL if excludes or name != "exclude"]
    while True:
        chosen = set(rng.sample(names, rng.randint(1, 4)))
        is_lone = any(name in chosen and not needed & chosen for name, needed in NEEDS.items())
        if is_lone or any(pair <= chosen for pair in LEFT_OUT):
            continue
        words = [rng.choice(POOL[name].split()) for name in POOL if name in chosen]
        if {"gpus", "tasks"} <= chosen and "-n3" in words:
            continue  # before 23.11, a job with GPUs had no more nodes than tasks
        return " ".join(words)


def define_nodes(cluster: Cluster) -> str:
    """Return the lines of slurm.conf that define the nodes of a cluster."""
    return "\n".join(
        f"NodeName={kind.prefix}[1-{kind.num_nodes}] CPUs={kind.cpus} "
        f"RealMemory={kind.memory_mib} State=CLOUD"
        + (f" Gres=gpu:{kind.gpus}" if kind.gpus else "")
        for kind in cluster.leaves
    )


@pytest.fixture(params=[EQUAL, MIXED], ids=["equal nodes", "nodes of three sizes"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    found: Cluster = request.param
    return found


@pytest.fixture
def environment(cluster: Cluster, tmp_path: Path) -> Iterator[dict[str, str]]:
    tree, lines = cluster.tree, define_nodes(cluster)
    (tmp_path / "topology.conf").write_text(render_tree_config(build_switches(tree)))
    with running_slurmctld(tmp_path, tree.nodes, node_lines=lines) as variables:
        await_topology(variables)
        (tmp_path / "job.sh").write_text(SCRIPT)
        yield variables | {"JOB": str(tmp_path / "job.sh")}


def ask_slurm(environment: dict[str, str], options: str) -> tuple[str, ...]:
    """Return the nodes on which slurmctld would start a job; none if it would not."""
    argv = ["sbatch", "--test-only", *options.split(), environment["JOB"]]
    ran = subprocess.run(
        argv, env=environment, capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )
    found = STARTS.search(ran.stdout + ran.stderr)
    return expand_names(found[1]) if found else ()


def ask_toponaut(cluster: Cluster, options: str) -> list[str]:
    try:
        return used_nodes(placed(options, cluster))
    except PlacementRequestError:
        return []


def test_toponaut_and_slurmctld_start_the_same_jobs(
    cluster: Cluster, environment: dict[str, str]
) -> None:
    rng = Random(len(cluster.leaves))  # noqa: S311 - test data
    drawn = {draw_options(rng, excludes=cluster is MIXED) for _ in range(examples(1500))}
    wrong: list[str] = []
    for options in sorted(drawn):
        slurm, ours = ask_slurm(environment, options), ask_toponaut(cluster, options)
        if bool(slurm) != bool(ours):
            wrong.append(f"{options}: slurmctld {','.join(slurm)}, Toponaut {','.join(ours)}")
    assert wrong == []
    assert len(drawn) > 50


@pytest.mark.parametrize("cluster", [EQUAL], ids=["equal nodes"], indirect=True)
def test_guides_use_as_many_nodes_as_with_slurmctld(environment: dict[str, str]) -> None:
    known = run_slurm(environment, "sbatch", "--help")
    wrong = []
    for options, num_nodes, _ in GUIDES:
        if " : " in options or "cpus-per-gpu=12 --ntasks" in options:
            continue
        asked = re.sub(r"-C gpu|--threads-per-core=2|n\[01-02\],?", "", options)
        found = len(ask_slurm(environment, asked))
        if found != num_nodes:
            wrong.append(f"{options}: slurmctld uses {found} nodes, expected {num_nodes}")
    assert known
    assert wrong == []


@pytest.mark.parametrize("cluster", [EQUAL], ids=["equal nodes"], indirect=True)
def test_components_of_a_job_share_no_node(environment: dict[str, str]) -> None:
    run_slurm(environment, "sbatch", "-N7", ":", "-n1", environment["JOB"])
    names: list[str] = []

    def is_waiting() -> str:
        shown = run_slurm(environment, "squeue", "--noheader", "--format=%N").split()
        names[:] = [name for part in shown for name in expand_names(part)]
        return "" if len(names) >= 8 else "no nodes"

    wait_until(is_waiting, deadline_s=DEADLINE_S, what="slurmctld starts both components")
    assert sorted(names) == sorted(EQUAL.tree.nodes)


@pytest.mark.parametrize("cluster", [EQUAL], ids=["equal nodes"], indirect=True)
def test_the_table_has_every_option_that_sbatch_has(environment: dict[str, str]) -> None:
    shown = run_slurm(environment, "sbatch", "--help")
    names = {f"--{name}" for name in re.findall(r"--([a-z][a-z-]+)", shown)}
    assert len(names) > 80
    retired = {"--power"}  # until 24.05
    assert names - OPTIONS.keys() - ALIASES.keys() - retired == set()
