"""A genuine slurmctld reads the exported topology, and shows the same tree.

It runs alone: nodes in the state CLOUD need no slurmd, and nothing starts on them.
"""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from generator.outputs.slurm import build_switches, render_tree_config
from tests.daemonset.readers import Reader, written
from tests.generator.scenes import RAILS, Scene
from tests.lab.tools import require_tools
from tests.lab.wait import wait_until
from topology.model.name_ranges import expand_names, fold_names
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120)]

DEADLINE_S = 30
TIERS = ("leaf", "spine", "core")
CONFIG = """ClusterName=lab
SlurmctldHost=localhost
SlurmUser={user}
AuthType=auth/none
CredType=cred/none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPort={port}
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
TopologyPlugin=topology/tree
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ProctrackType=proctrack/linuxproc
NodeName={nodes} CPUs=1 State=CLOUD
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=360000
ResumeTimeout=60000
PartitionName=all Nodes=ALL Default=YES OverSubscribe=EXCLUSIVE
"""


def build_pods(num_spines: int, num_leaves: int, num_nodes: int) -> TopologyTree:
    specs = [DomainSpec("core-01-08", 3, None)]
    number = 0
    for spine in range(num_spines):
        specs.append(DomainSpec(f"spine-{spine}", 2, "core-01-08"))
        for leaf in range(num_leaves):
            nodes = tuple(f"node-{at:04d}" for at in range(number, number + num_nodes))
            number += num_nodes
            specs.append(DomainSpec(f"leaf-{spine}-{leaf}", 1, f"spine-{spine}", nodes))
    return build_tree(specs, tiers=TIERS)


TREES = [
    pytest.param(build_pods(4, 4, 16), id="three tiers of 256 nodes"),
    pytest.param(
        build_tree(
            [
                DomainSpec("spine-1", 2, None, ("direct-1",)),
                DomainSpec("leaf-1", 1, "spine-1", ("a1", "a2", "a10")),
                DomainSpec("island-1", 1, None, ("b1",)),
            ],
            tiers=TIERS,
            unplaced=[Unplaced("lost-7", "no report")],
        ),
        id="nodes above the leaves, an island and an unplaced node",
    ),
]


@contextmanager
def running_slurmctld(
    folder: Path, tree: TopologyTree, *, num_gpus: int = 0
) -> Iterator[dict[str, str]]:
    """Yield the environment for scontrol and sbatch."""
    require_tools("slurmctld", "scontrol", is_root_needed=True)
    (folder / "state").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    nodes = fold_names((*tree.nodes, *(row.node for row in tree.unplaced)))
    config = CONFIG.format(user="root", port=port, folder=folder, nodes=nodes)
    if num_gpus:
        config = config.replace(" CPUs=1 ", f" CPUs=1 Gres=gpu:{num_gpus} ") + "GresTypes=gpu\n"
    (folder / "slurm.conf").write_text(config)
    (folder / "topology.conf").write_text(render_tree_config(build_switches(tree)))
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
    environment = {**os.environ, "PATH": path, "SLURM_CONF": str(folder / "slurm.conf")}
    program = shutil.which("slurmctld", path=path)
    assert program
    with (folder / "output").open("wb") as output:
        running = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", program, "-D", "-c", "-f", folder / "slurm.conf"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield environment
    finally:
        running.kill()
        running.wait()


def run_slurm(environment: dict[str, str], *argv: str) -> str:
    return subprocess.run(
        argv, env=environment, capture_output=True, text=True, check=False, timeout=DEADLINE_S
    ).stdout


def await_topology(environment: dict[str, str]) -> str:
    """Wait until slurmctld answers; return the topology that it shows."""
    found: list[str] = []

    def is_missing() -> str:
        found.append(run_slurm(environment, "scontrol", "show", "topology"))
        return "" if "SwitchName=" in found[-1] else "no topology"

    wait_until(is_missing, deadline_s=DEADLINE_S, what="slurmctld answers")
    return found[-1]


@pytest.mark.parametrize("tree", TREES)
def test_slurmctld_shows_the_tree(tree: TopologyTree, tmp_path: Path) -> None:
    switches = build_switches(tree)
    with running_slurmctld(tmp_path, tree) as environment:
        shown = await_topology(environment)
    rows = re.findall(r"^SwitchName=(\S+) Level=(\d+) LinkSpeed=\d+ (.*)$", shown, re.MULTILINE)
    fields = {name: dict(word.split("=") for word in rest.split()) for name, _, rest in rows}
    assert set(fields) == {switch.name for switch in switches}
    for switch in switches:
        names = expand_names(fields[switch.name].get("Switches", ""))
        assert set(names) == set(switch.switches)
        if switch.nodes:
            assert set(expand_names(fields[switch.name]["Nodes"])) == set(switch.nodes)
    nodes_of = {name: frozenset(expand_names(row["Nodes"])) for name, row in fields.items()}
    for domain in tree.domains:
        assert nodes_of[domain.name] == set(tree.nodes_of(domain))


def test_its_documented_lines_lead_from_the_tree_to_a_job(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    folder, fabric = tmp_path / "slurm", tmp_path / "fabric"
    folder.mkdir()
    fabric.mkdir()
    (fabric / "reports").symlink_to(scene.store() / "neighborreports")
    (fabric / "nodes.yaml").symlink_to(scene.kube_nodes())
    (block,) = written("schedulers.md", "Slurm")
    lines = block.replace("/etc/slurm", str(folder)).replace(" fabric/", f" {fabric}/")
    empty = build_tree([DomainSpec("none", 1, None, tuple(scene.hosts))], tiers=("leaf",))
    with running_slurmctld(folder, empty, num_gpus=8) as environment:
        await_topology(environment)
        printed = Reader(tmp_path, variables=environment).type(lines)
        assert "SwitchName=leaf" in printed
        assert "feasible: 4 pods within one leaf" in printed
        wait_until(
            lambda: "" if chosen_nodes(environment) else "no nodes",
            deadline_s=DEADLINE_S,
            what="slurmctld chooses nodes",
        )
        nodes = chosen_nodes(environment)
    leaves = re.findall(r"^SwitchName=leaf\S* .* Nodes=(\S+)", printed, re.MULTILINE)
    assert len(leaves) == 4
    assert nodes in leaves


def chosen_nodes(environment: dict[str, str]) -> str:
    """Return the nodes of the only job in the form of Slurm; empty while it waits."""
    return run_slurm(environment, "squeue", "--noheader", "--format=%N").strip()
