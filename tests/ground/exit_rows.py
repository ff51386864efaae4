"""Every command of both programs, and a run of it that works; a new command needs a row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest

from agent.cli.commands import cli as agent
from generator.cli.group import cli as toponaut
from generator.history.history_file import HistoryWriter
from generator.outputs.hypernode.model import HyperNode, Member, MemberType, render_manifest
from generator.simulation.replay.replay import build_tree_of_shape
from tests.agent.nodes import card, plant
from tests.effort import first_of
from tests.generator.scenes import RAILS, Scene
from topology.model.tree import API_VERSION, render_tree

PROGRAMS = {"toponaut": toponaut, "toponaut-agent": agent}
MODULES = {"toponaut": "generator", "toponaut-agent": "agent"}
QUICK = frozenset({"toponaut tree", "toponaut simulate jobs", "toponaut-agent collectors"})


@dataclass(frozen=True, slots=True)
class Row:
    """How to call a command; words in braces are files of `write_inputs`."""

    words: str
    codes: frozenset[int] = frozenset({0})
    """How it ends."""
    prints: bool = True
    """Whether it writes to stdout."""
    output: str = ""
    """The option that names a file or folder to write."""
    waits: bool = field(default=False)
    """Whether it runs until a signal."""


_NODE = "--node-name n --sysfs-root {sysfs} --frames never --lldpcli no --nvidia-smi no"
_HYPERNODE = render_manifest(HyperNode("leaf-1", 1, "", (Member(MemberType.NODE, "n1"),)))
ROWS = {
    "toponaut tree": Row("{sweep}"),
    "toponaut status": Row("{sweep}"),
    "toponaut planes": Row("{sweep}"),
    "toponaut findings": Row("{sweep}"),
    "toponaut describe": Row("node node-0001 {sweep}"),
    "toponaut diff": Row("{sweep} --cabling {cabling}"),
    "toponaut history": Row("--history {history}"),
    "toponaut switches": Row(
        "--config {switches} --deadline 200ms", frozenset({4}), prints=False
    ),
    "toponaut inspect": Row("{sweep}"),
    "toponaut plan": Row("--store {store} --nodes {nodes}"),
    "toponaut apply": Row("{sweep} --nodes {nodes}", output="--store"),
    "toponaut approve": Row("0123456789abcdef", prints=False, output="--store"),
    "toponaut lint": Row("{hypernodes}"),
    "toponaut adopt": Row("{sweep} --nodes {nodes}", output="--store"),
    "toponaut export": Row("labels {sweep}"),
    "toponaut place": Row("-f {request} --tree {tree}"),
    "toponaut compare": Row("-f {request} --tree {tree}"),
    "toponaut where": Row("job --tree {tree} --running {running}"),
    "toponaut ranks": Row("job --tree {tree} --running {running}"),
    "toponaut capacity": Row("--tree {tree}"),
    "toponaut links": Row("{sweep}"),
    "toponaut path": Row("node-0001 node-0002 {sweep}"),
    "toponaut reservations": Row("--store {store}"),
    "toponaut rpc": Row(
        "GetTopology --server 127.0.0.1:9 --timeout 60s", frozenset({2}), prints=False
    ),
    "toponaut serve": Row(
        "--store {store} --listen 127.0.0.1:0 --insecure-loopback", prints=False, waits=True
    ),
    "toponaut simulate fabric": Row(
        "--hosts 16 --rails 2 --radix 8", prints=False, output="--out"
    ),
    "toponaut simulate jobs": Row("--num-jobs 20 --fabric 2x2x4"),
    "toponaut doctor": Row("--kubeconfig {nodes}", frozenset({2}), prints=False),
    "toponaut explain": Row("missing-link"),
    "toponaut completion": Row("bash"),
    "toponaut schema": Row("tree"),
    "toponaut-agent once": Row(f"{_NODE} -o json", frozenset({0, 3, 4})),
    "toponaut-agent run": Row(f"{_NODE} --period 1h", prints=False, output="--publish", waits=True),
    "toponaut-agent collectors": Row(_NODE),
    "toponaut-agent doctor": Row(_NODE, frozenset({0, 5})),
}  # fmt: skip


def commands(
    group: click.Group | None = None, path: str = ""
) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that users type, by its words."""
    if group is None:
        for name, program in PROGRAMS.items():
            yield from commands(program, name)
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def write_inputs(root: Path) -> dict[str, str]:
    """Write the files that rows name, and return their paths."""
    scene = Scene.of(root, RAILS)
    request = {"gang": "g", "groups": [{"name": "w", "count": 4}]}
    pods = [{"node": "node-1-1-1"}, {"node": "node-1-2-1"}]
    files = {
        "sweep": scene.sweep(),
        "nodes": scene.nodes(),
        "store": scene.store(),
        "hypernodes": scene.write("hypernodes.json", json.dumps(_HYPERNODE)),
        "cabling": scene.write("plan.csv", "device_a,port_a,device_b,port_b\na,1,b,1\n"),
        "switches": scene.write(
            "switches.yaml", "switches: [{addresses: [127.0.0.1], communityFile: community}]\n"
        ),
        "tree": scene.write("tree.json", json.dumps(render_tree(build_tree_of_shape("2x2x4")))),
        "request": scene.write(
            "request.json",
            json.dumps({"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": request}),
        ),
        "running": scene.write("running.json", json.dumps([{"gang": "job", "pods": pods}])),
        "sysfs": plant(root / "sys", card("eth0", "0000:03:00.0", "b8:ce:f6:00:00:01")),
    }
    scene.write("community", "public\n")
    files["history"] = root / "history.sqlite"
    HistoryWriter(files["history"]).record(build_tree_of_shape("2x2x4"), (), 1_760_000_000)
    return {name: str(path) for name, path in files.items()}


def names_of(rows: Iterable[str]) -> list[object]:
    """Return the rows, with a few of every kind first."""
    ordered = sorted(rows, key=lambda name: name not in QUICK)
    return first_of(ordered, num_quick=sum(name in QUICK for name in ordered))


def pairs_of(rows: Iterable[str], *conditions: Iterable[object]) -> list[object]:
    """Return each quick row with every value of the first kind of condition, and each other row
    with one, in turn: what a command does under a condition is written once for all of them.
    """
    kinds = [list(kind) for kind in conditions]
    quick = [name for name in rows if name in QUICK]
    others = sorted(set(rows) - QUICK)
    cases = [(name, at) for at in range(len(kinds[0])) for name in quick]
    turns = [*cases, *((name, at) for at, name in enumerate(others))]
    return [
        pytest.param(
            name,
            *(kind[at % len(kind)] for kind in kinds),
            marks=() if name in QUICK else pytest.mark.long,
        )
        for name, at in turns
    ]


def ending(*, prints: bool | None = None) -> list[str]:
    return [
        name
        for name, row in ROWS.items()
        if not row.waits and (prints is None or row.prints is prints)
    ]
