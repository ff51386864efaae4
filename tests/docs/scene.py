"""The folder that the pages speak of, and a shell in it."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from click.testing import CliRunner

from agent.cli.commands import cli as agent_cli
from generator.cli.group import cli
from tests.generator.scenes import kube_node, run
from tests.lab.wait import wait_until
from tests.repository import ROOT

DEADLINE_S = 120
_FABRIC = ("--hosts", "64", "--rails", "4", "--radix", "16", "--swap", "1")
_PODS_PER_LEAF = 8
_PLAN = """device_a,port_a,device_b,port_b
node-0050,mlx5_1/1,leaf-p04-g07-r2,2
node-0057,mlx5_3/1,leaf-p04-g08-r4,1
"""
_TOPOLOGY = """apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: default}
spec: {levels: [{nodeLabel: example.com/row}, {nodeLabel: example.com/rack}]}
"""
_SILENCE = "- {kind: wrong-rail, device: node-0001, reason: a spare cable, until: 2100-01-01}\n"
_JOB = "fixtures/manifests/kueue-job-required/input.yaml"
_LASTS = re.compile(r"toponaut serve |toponaut-agent run ")
_OURS = re.compile(r"toponaut(-agent)? [^|<>&;*$]+")
"""Lines without anything that only a shell understands."""
PROGRAMS = {"toponaut": cli, "toponaut-agent": agent_cli}
_MPI = re.compile(r" && mpirun .*")


def label_node(number: int) -> Mapping[str, str]:
    """Return the labels by which clouds and tools place a node."""
    leaf = number // _PODS_PER_LEAF
    row, rack = f"row-{leaf // 2}", f"rack-{leaf}"
    return {
        "example.com/row": row,
        "example.com/rack": rack,
        "topology.k8s.aws/network-node-layer-1": "nn-0",
        "topology.k8s.aws/network-node-layer-2": row,
        "topology.k8s.aws/network-node-layer-3": rack,
        "cloud.google.com/gce-topology-block": row,
        "cloud.google.com/gce-topology-subblock": rack,
        "fabric.topograph.run/tier-1": row,
        "fabric.topograph.run/tier-0": rack,
    }


def list_nodes(num_nodes: int = 64) -> list[dict[str, object]]:
    """Return the nodes as kubectl lists them."""
    nodes = []
    for number in range(num_nodes):
        node = kube_node(f"node-{number + 1:04}")
        node["metadata"]["labels"].update(label_node(number))
        nodes.append(node)
    return nodes


def make_scene(root: Path) -> None:
    """Write the files that the pages name."""
    for name in ("fixtures", "examples", "daemonset"):
        (root / name).symlink_to(ROOT / name)
    fabric = root / "fabric"
    assert run("simulate", "fabric", *_FABRIC, "--out", fabric).code == 0
    links = {
        "reports": fabric / "reports",
        "captures": fabric / "lldpcli",
        "walks": fabric / "snmpwalk",
        "nodes.yaml": fabric / "nodes.yaml",
        "sweep.txt": next((fabric / "ibnetdiscover").iterdir()),
        "gang.yaml": ROOT / "fixtures/demo/gang.yaml",
        "job.yaml": ROOT / _JOB,
        "train.sh": ROOT / "examples/schedulers/slurm/train.sh",
        "opensm-subnet.lst": ROOT / "fixtures/opensm/subnet-lst/input.lst",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    shutil.copytree(fabric / "reports", root / "store/neighborreports")
    planes = ("--storage-leaves", "2", "--out", root / "planes")
    assert run("simulate", "fabric", *_FABRIC, *planes).code == 0
    shutil.copytree(root / "planes/reports", root / "DIR")
    (root / "DIR/neighborreports").symlink_to(fabric / "reports")
    reports = ("--reports", fabric / "reports", "--nodes", fabric / "nodes.yaml")
    (root / "tree.json").write_text(run("tree", *reports, "-o", "json").out)
    for folder in ("hypernodes", "DIRECTORY"):
        assert run("export", "hypernodes", *reports, "--out", root / folder).code == 0
    listed = {"apiVersion": "v1", "kind": "List", "items": list_nodes()}
    (root / "nodes.json").write_text(json.dumps(listed))
    (root / "plan.csv").write_text(_PLAN)
    (root / "known.yaml").write_text(_SILENCE)
    (root / "topology.yaml").write_text(_TOPOLOGY)
    trace = "submit_time_s,duration_s,gpus\n" + "".join(f"{at},600,8\n" for at in range(20))
    (root / "trace.csv.gz").write_bytes(gzip.compress(trace.encode()))


class Shell:
    """A person in the folder, who stops what goes on in the foreground before leaving."""

    def __init__(self, folder: Path) -> None:
        """Start nothing yet."""
        self._folder = folder
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._env = {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8"}
        self._running: list[subprocess.Popen[bytes]] = []

    def run(self, line: str) -> str:
        """Run a line; it succeeds, or `--check` finds something, or fields are ignored.

        Returns:
            what it prints, stdout first.
        """
        line = _MPI.sub("", line.split("   #", maxsplit=1)[0].strip())
        line = line.replace("/var/log/", "")
        if "--out fabric" in line:
            (self._folder / "fabric").unlink()  # the reader's folder is new
        if _LASTS.match(line):
            self._start(line)
            return ""
        allowed = {0, 5} if "--check" in line or "doctor" in line else {0}
        code, out, err = self._run_here(line) if _OURS.fullmatch(line) else self._run_in_bash(line)
        assert code in allowed, f"{line}: {code}: {err}"
        return out + err

    def _run_here(self, line: str) -> tuple[int, str, str]:
        """Run one of our commands in this process; return its exit code, stdout and stderr."""
        program, *words = shlex.split(line)
        with contextlib.chdir(self._folder):
            ran = CliRunner(env=self._env).invoke(PROGRAMS[program], words)
        if ran.exception and not isinstance(ran.exception, SystemExit):
            raise ran.exception
        return ran.exit_code, ran.stdout, ran.stderr

    def _run_in_bash(self, line: str) -> tuple[int, str, str]:
        ran = subprocess.run(
            ["bash", "-uo", "pipefail", "-c", line],
            cwd=self._folder,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        return ran.returncode, ran.stdout, ran.stderr

    def run_python(self, text: str) -> None:
        """Run a Python example, beside a server if it calls one."""
        if "127.0.0.1:50051" in text:
            self.run("toponaut serve --store store --nodes nodes.yaml --insecure-loopback")
        ran = subprocess.run(
            [sys.executable, "-c", text],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        assert ran.returncode == 0, ran.stderr

    def _start(self, line: str) -> None:
        """Start a program that lasts, and wait until it is ready."""
        reports = self._folder / "store/neighborreports"
        before = set(reports.iterdir())
        ready = self._folder / f"ready-{len(self._running)}"
        option = f" --ready-file {ready}" if "toponaut serve" in line else ""
        program = subprocess.Popen(
            ["bash", "-c", f"exec {line}{option}"],
            cwd=self._folder,
            env=self._env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._running.append(program)
        wait_until(
            lambda: "" if ready.exists() or set(reports.iterdir()) - before else "not ready",
            deadline_s=DEADLINE_S,
            what=line,
        )

    def close(self) -> None:
        """Stop the programs that last; they end with 0."""
        for program in self._running:
            program.send_signal(signal.SIGTERM)
        codes = [program.wait(DEADLINE_S) for program in self._running]
        assert codes == [0] * len(codes)
