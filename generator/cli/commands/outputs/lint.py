"""`toponaut lint`: problems of any set of HyperNodes, before Volcano meets them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from generator.cli import options
from generator.cli.exit_codes import ExitCode, exit_with_problems, exit_without_data
from generator.cli.options import ClusterOptions
from generator.cli.output import Table, print_document, show_count
from generator.kube.access import ClusterAccess
from generator.objects.yaml_document import parse_documents
from generator.outputs.hypernode.lint import (
    EFFECTS,
    HyperNodeProblem,
    ProblemKind,
    find_set_problems,
)
from generator.outputs.hypernode.model import HyperNode, parse_manifest
from topology.model.errors import ConfigError, ParseError, show

if TYPE_CHECKING:
    from generator.objects.inventory import Inventory

_MAX_BYTES: Final = 64 << 20
_MAX_TEXT: Final = 600
_KIND: Final = "HyperNode"
_CONTROL_PLANE: Final = frozenset(
    f"node-role.kubernetes.io/{role}"
    for role in ("control-plane", "controlplane", "etcd", "master")
)
"""Labels and taints of kubeadm, k3s, RKE and older releases."""
_HARD_EFFECTS: Final = (":NoSchedule", ":NoExecute")


@options.command(
    "lint",
    examples=(
        "toponaut lint store/hypernodes",
        "toponaut lint --kube --check",
    ),
)
def command(
    *,
    paths: tuple[str, ...] = options.argument(nargs=-1, metavar="[PATH]..."),
    nodes: Path | None = options.option(
        "Nodes of the cluster, to see what patterns and labels select: output of `kubectl get "
        "nodes -o json`, or an inventory."
    ),
    cluster: ClusterOptions = options.kube("Check the HyperNodes of the cluster, with its nodes."),
    check: bool = options.option("Exit with 5 if there is any problem."),
    output: str = options.OUTPUT,
) -> None:
    """List what makes Volcano crash, stall or place wrongly in a set of HyperNodes.

    PATH is a YAML or JSON file, a folder of them, or - for stdin. Together they are one set:
    kubectl get hypernodes -o yaml | toponaut lint - --nodes nodes.json. Without --nodes, patterns
    and labels are only checked for errors.
    """
    access = cluster.find_cluster()
    if bool(paths) == (access is not None):
        raise click.UsageError("give the HyperNodes to check: files, folders, - or --kube")
    found = _read_paths(paths, nodes) if access is None else _fetch_set(access, nodes)
    if not found.hypernodes and not found.problems:
        exit_without_data([ParseError("no HyperNodes found", source=", ".join(paths) or "cluster")])
    inventory = found.inventory
    labels = None if inventory is None else inventory.labels_by_node
    unlisted = _list_control_planes(inventory) if inventory else ()
    set_problems = find_set_problems(found.hypernodes, labels, unlisted=unlisted)
    rows = (*found.problems, *set_problems)
    document = [
        {
            "kind": row.kind.value,
            "subject": row.subject,
            "message": row.text,
            "effect": EFFECTS[row.kind],
        }
        for row in rows
    ]
    print_document(
        document,
        output,
        text=lambda: _build_table(rows, len(found.hypernodes)),
    )
    problems = inventory.problems if inventory else ()
    exit_with_problems(problems, ExitCode.CHECK_FAILED if check and rows else None)


class _HyperNodeSet(NamedTuple):
    hypernodes: tuple[HyperNode, ...] = ()
    problems: tuple[HyperNodeProblem, ...] = ()
    """Objects that cannot be read."""
    inventory: Inventory | None = None


def _list_control_planes(inventory: Inventory) -> frozenset[str]:
    """Return the nodes of the control plane that a taint keeps free of other pods."""
    return frozenset(
        node.name
        for node in inventory.nodes
        if any(taint.endswith(_HARD_EFFECTS) for taint in node.spec.taints)
        and not _CONTROL_PLANE.isdisjoint(
            (*node.spec.labels, *(taint.partition("=")[0] for taint in node.spec.taints))
        )
    )


def _read_paths(paths: Iterable[str], nodes: Path | None) -> _HyperNodeSet:
    from generator.store.local_files import read_inventory
    from generator.store.object_files import list_files

    hypernodes: list[HyperNode] = []
    problems: list[HyperNodeProblem] = []
    for path in paths:
        files = [str(file) for file in list_files(Path(path))] if Path(path).is_dir() else [path]
        for file in files:
            _read_file(file, hypernodes, problems)
    return _HyperNodeSet(tuple(hypernodes), tuple(problems), read_inventory(nodes))


def _read_file(file: str, hypernodes: list[HyperNode], problems: list[HyperNodeProblem]) -> None:
    """Add the HyperNodes of a file, and those that cannot be read; skip objects of other kinds."""
    from generator.store.local_files import read_input

    source, raw = read_input(file, _MAX_BYTES)
    for document in parse_documents(raw, source=source):
        if isinstance(document, ParseError):
            problems.append(_build_problem(source, str(document)))
            continue
        value = document.value
        if isinstance(value, Mapping) and value.get("kind", _KIND) != _KIND:
            continue
        try:
            hypernodes.append(parse_manifest(value))
        except ConfigError as error:
            problems.append(_build_problem(source, str(error)))


def _build_problem(source: str, text: str) -> HyperNodeProblem:
    line = f"{source}: {show(text.removeprefix(f'{source}:').strip(), _MAX_TEXT)}"
    return HyperNodeProblem(ProblemKind.INVALID_OBJECT, source, line)


def _fetch_set(access: ClusterAccess, nodes: Path | None) -> _HyperNodeSet:
    from generator.store.cluster_store import open_cluster
    from generator.store.local_files import read_inventory

    with open_cluster(access, os.environ) as store:
        stored = store.read_hypernodes()
        inventory = read_inventory(nodes) or store.objects.read_nodes()
    problems = [_build_problem(row.source or "cluster", row.problem) for row in stored.all_problems]
    readable = tuple(row for row in stored.values if not row.is_unreadable)
    return _HyperNodeSet(readable, tuple(problems), inventory)


def _build_table(rows: Sequence[HyperNodeProblem], num_hypernodes: int) -> Table:
    checked = show_count(num_hypernodes, _KIND)
    kinds = {row.kind for row in rows}
    return Table(
        ("kind", "subject", "problem"),
        [
            (row.kind.value, row.subject, f"{show(row.text, _MAX_TEXT)}; {EFFECTS[row.kind]}")
            for row in rows
        ],
        f"{show_count(len(rows), 'problem')} of {show_count(len(kinds), 'kind')} in {checked}",
        f"no problems in {checked}",
    )
