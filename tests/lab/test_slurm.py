"""A genuine slurmctld reads the exported files, and shows the same tree and blocks.

It runs alone: nodes in the state CLOUD need no slurmd, and nothing starts on them. The first
slurmctld on the PATH runs; a test whose file it is too old to read is skipped.
"""

import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.outputs.formats import ExportFormat
from generator.outputs.slurm import (
    build_blocks,
    build_switches,
    find_slurm_problem,
    is_slurm_name,
)
from tests.daemonset.readers import Reader, written
from tests.generator.outputs.slurm_reader import parse_topology_conf
from tests.generator.scenes import RAILS, Scene, run
from tests.lab.tools import require_tools
from tests.lab.wait import wait_until
from topology.model.name_ranges import expand_names, fold_names
from topology.model.tree import (
    DomainSpec,
    TopologyTree,
    Unplaced,
    build_tree,
    render_tree,
    without_nodes,
)

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120)]

DEADLINE_S = 30
PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
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
TopologyPlugin={plugin}
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


LONG = "gpu-node-000{}.cluster-a.building-1.prod.internal.operator-net.example"
ODD = ("inf", "null", "on", "1e5", "0x10", "123", "1-2", "a.b", "A", "DEFAULT", "all", "x" * 63)
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
    pytest.param(
        build_tree(
            [
                DomainSpec("core-1", 3, None),
                DomainSpec("spine-1", 2, "core-1"),
                DomainSpec("spine-2", 2, "core-1"),
                DomainSpec("leaf-1", 1, "spine-1", (LONG.format(1), LONG.format(2))),
                DomainSpec("leaf-2", 1, "spine-2", (LONG.format(3), "a1")),
                DomainSpec("leaf-3", 1, "spine-2", ("a2", "a" + "9" * 20)),
            ],
            tiers=TIERS,
        ),
        id="nodes that Slurm cannot hold, alone in a spine and beside others",
    ),
    pytest.param(
        build_tree(
            [
                DomainSpec("9" * 32, 2, None),
                *(DomainSpec(name, 1, "9" * 32, (f"n{at}",)) for at, name in enumerate(ODD)),
                DomainSpec("l" + "7" * 20, 1, "9" * 32, ("m1",)),
                DomainSpec("a leaf [1]", 1, "9" * 32, ("m2",)),
            ],
            tiers=TIERS,
        ),
        id="names of switches that could be read as others",
    ),
]
FORMATS = [
    pytest.param(ExportFormat.SLURM_TREE, "topology/tree", (22, 5), id="topology.conf of a tree"),
    pytest.param(
        ExportFormat.SLURM_BLOCK, "topology/block", (23, 11), id="topology.conf of blocks"
    ),
    pytest.param(ExportFormat.SLURM_YAML, "topology/flat", (25, 5), id="topology.yaml"),
]
"""The plugin that slurm.conf names; topology.yaml replaces it."""


def find_program(name: str) -> str:
    program = shutil.which(name, path=PATH)
    assert program
    return program


def require_slurm(least: tuple[int, int]) -> None:
    """Skip the test if the first slurmctld is older than this release."""
    require_tools("slurmctld", "scontrol", is_root_needed=True)
    ran = subprocess.run(
        [find_program("slurmctld"), "-V"], capture_output=True, text=True, check=True, timeout=10
    )
    major, minor = map(int, re.findall(r"[0-9]+", ran.stdout)[:2])
    if (major, minor) < least:
        pytest.skip(f"needs Slurm {least[0]}.{least[1]:02}, and {major}.{minor:02} is installed")


@contextmanager
def running_slurmctld(
    folder: Path,
    nodes: Iterable[str],
    *,
    plugin: str = "topology/tree",
    num_gpus: int = 0,
    node_lines: str = "",
) -> Iterator[dict[str, str]]:
    """Yield the environment for scontrol and sbatch; the file of the topology is in the folder.

    With lines that define the nodes, jobs share nodes, and CPUs, memory and GPUs are counted.
    """
    require_tools("slurmctld", "scontrol", is_root_needed=True)
    (folder / "state").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = CONFIG.format(
        user="root", port=port, folder=folder, nodes=fold_names(nodes), plugin=plugin
    )
    if num_gpus:
        config = config.replace(" CPUs=1 ", f" CPUs=1 Gres=gpu:{num_gpus} ") + "GresTypes=gpu\n"
    if node_lines:
        config = re.sub("^NodeName=.*$", node_lines, config, flags=re.MULTILINE)
        config = config.replace("CR_CPU", "CR_CPU_Memory").replace("=EXCLUSIVE", "=NO")
        config += "GresTypes=gpu\nSchedulerParameters=bf_interval=1\n"
    (folder / "slurm.conf").write_text(config)
    environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(folder / "slurm.conf")}
    with (folder / "output").open("wb") as output:
        running = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", find_program("slurmctld")),
                *("-D", "-c", "-f", folder / "slurm.conf"),
            ],
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
        return "" if "Name=" in found[-1] else "no topology"

    wait_until(is_missing, deadline_s=DEADLINE_S, what="slurmctld answers")
    return found[-1]


@pytest.mark.parametrize(("chosen", "plugin", "least"), FORMATS)
@pytest.mark.parametrize("tree", TREES)
def test_slurmctld_shows_the_tree(
    tree: TopologyTree, chosen: ExportFormat, plugin: str, least: tuple[int, int], tmp_path: Path
) -> None:
    require_slurm(least)
    saved, folder = tmp_path / "tree.json", tmp_path / "slurm"
    saved.write_text(json.dumps(render_tree(tree)))
    left_out = [node for node in tree.all_nodes if not is_slurm_name(node)]
    ran = run("export", chosen.value, "--tree", saved, "--out", folder)
    assert ran.code == (ExitCode.SKIPPED if left_out else ExitCode.OK)
    shown_tree = without_nodes(tree, left_out)
    with running_slurmctld(folder, shown_tree.all_nodes, plugin=plugin) as environment:
        shown = await_topology(environment)
    if chosen is ExportFormat.SLURM_BLOCK:
        compare_blocks(shown, shown_tree)
    else:
        compare_switches(shown, shown_tree)


def parse_units(shown: str, kind: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the fields of each unit that scontrol shows."""
    rows = re.findall(rf"^{kind}=(\S+) (.*)$", shown, re.MULTILINE)
    fields = {name: dict(word.split("=") for word in rest.split()) for name, rest in rows}
    return {
        name: {key: expand_names(value) for key, value in row.items()}
        for name, row in fields.items()
    }


def compare_switches(shown: str, tree: TopologyTree) -> None:
    units, switches = parse_units(shown, "SwitchName"), build_switches(tree)
    assert set(units) == {switch.name for switch in switches}
    for switch in switches:
        assert set(units[switch.name].get("Switches", ())) == set(switch.switches)
        if switch.nodes:
            assert set(units[switch.name]["Nodes"]) == set(switch.nodes)
    below = {frozenset(row["Nodes"]) for row in units.values()}
    assert {frozenset(tree.nodes_of(domain)) for domain in tree.domains} <= below


def compare_blocks(shown: str, tree: TopologyTree) -> None:
    units, layout = parse_units(shown, "BlockName"), build_blocks(tree)
    assert [(name, set(row["Nodes"])) for name, row in units.items()] == [
        (block.name, set(block.nodes)) for block in layout.blocks
    ]
    joined = parse_units(shown, "AggregatedBlock")
    sizes = {int(row["BlockSize"][0]) for row in joined.values()}
    assert sizes == {*layout.sizes[1:]}


FATAL = [
    pytest.param("SwitchName=s Switches=l[0-1]\nSwitchName=l1 Nodes=n1\n", id="a missing child"),
    pytest.param("SwitchName=s Switches=t\nSwitchName=t Switches=s\n", id="a loop"),
    pytest.param("SwitchName=s Nodes=n1\nSwitchName=s Nodes=n2\n", id="a switch twice"),
    pytest.param(
        f"SwitchName=s Switches=x{'9' * 20}\nSwitchName=x{'9' * 20} Nodes=n1\n",
        id="a number beyond 64 bits",
    ),
]


@pytest.mark.parametrize("text", FATAL)
def test_what_stops_it_is_found_before_the_file_is_written(text: str, tmp_path: Path) -> None:
    (tmp_path / "topology.conf").write_text(text)
    with running_slurmctld(tmp_path, ("n1", "n2")):
        wait_until(
            lambda: "" if "fatal: " in read_log(tmp_path) else "it runs",
            deadline_s=DEADLINE_S,
            what="slurmctld stops",
        )
    assert find_slurm_problem(parse_topology_conf(text))


def read_log(folder: Path) -> str:
    files = (folder / "output", folder / "slurmctld.log")
    return "".join(file.read_text() for file in files if file.is_file())


def test_its_documented_lines_lead_from_the_tree_to_a_job(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    folder, fabric = tmp_path / "slurm", tmp_path / "fabric"
    folder.mkdir()
    fabric.mkdir()
    (fabric / "reports").symlink_to(scene.store() / "neighborreports")
    (fabric / "nodes.yaml").symlink_to(scene.kube_nodes())
    (block,) = written("schedulers.md", "Slurm")
    lines = block.replace("/etc/slurm", str(folder)).replace(" fabric/", f" {fabric}/")
    (folder / "topology.conf").write_text(f"SwitchName=none Nodes={fold_names(scene.hosts)}\n")
    with running_slurmctld(folder, scene.hosts, num_gpus=8) as environment:
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
