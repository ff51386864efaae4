"""`toponaut diff --against`: the cables compared with labels or HyperNodes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import click

from generator.cli.exit_codes import ExitCode, exit_with_problems, exit_without_data
from generator.cli.observation import (
    derive_hypernode_tree,
    read_labelled_nodes,
    read_observation,
    refuse_without_hosts,
)
from generator.cli.output import print_document, render_table, show_count
from generator.cli.source_values import parse_sources
from generator.ingest.sources import Sources, read_nodes
from generator.kube.access import ClusterAccess
from generator.objects.inventory import list_node_labels
from generator.observe.domain_witness import (
    Witness,
    WitnessDiff,
    WitnessKind,
    WitnessRow,
    compare_witness,
)
from generator.outputs.hypernode import resolve_selectors
from generator.store.base import StoredHyperNodes
from generator.store.directory import read_hypernodes
from topology.model.errors import ParseError, show
from topology.model.tree import API_VERSION, TopologyTree

_MESSAGE_CHARS: Final = 600


class _LoadedWitness(NamedTuple):
    tree: TopologyTree
    problems: tuple[ParseError, ...]


def print_witness_diff(
    ctx: click.Context, against: Witness, options: dict[str, Any], *, output: str, check: bool
) -> None:
    """Print which nodes the witness places in another domain than their cables do.

    Raises:
        click.UsageError: the options name no witness, or no cables.
    """
    if against is Witness.HYPERNODES and (options["node_labels"] or options["topology"]):
        raise click.UsageError("--against hypernodes compares with no labels")
    if against is Witness.LABELS and options["hypernodes"]:
        raise click.UsageError("--against labels compares with no HyperNodes")
    witness = parse_sources({**options, **dict.fromkeys(_CABLE_OPTIONS), **_NO_CABLES})
    sources = parse_sources({**options, **dict.fromkeys(_WITNESS_OPTIONS)})
    read = read_observation(sources)
    refuse_without_hosts(read)
    loaded = _READERS[against](witness, sources)
    diff = compare_witness(read.observation.tree, loaded.tree)
    print_document(
        _render_document(diff, against), output, text=lambda: render_witness_text(diff, against)
    )
    failed = ExitCode.CHECK_FAILED if check and diff.rows else None
    problems = tuple(dict.fromkeys((*read.problems, *loaded.problems)))
    exit_with_problems(ctx, problems, failed)


_WITNESS_OPTIONS: Final = ("hypernodes", "node_labels", "topology")
_CABLE_OPTIONS: Final = ("reports", "lldpcli", "snmpwalk", "planes", "plane")
_NO_CABLES: Final[Mapping[str, Any]] = {"ibnetdiscover": (), "files": ()}


def _read_labels(witness: Sources, sources: Sources) -> _LoadedWitness:
    if not witness.node_labels:
        raise click.UsageError("--against labels needs --node-labels or --topology")
    read = read_labelled_nodes(witness._replace(cluster=sources.cluster))
    return _LoadedWitness(read.observation.tree, read.problems)


def _read_hypernodes(witness: Sources, sources: Sources) -> _LoadedWitness:
    if witness.hypernodes is not None:
        stored = read_hypernodes(witness.hypernodes)
    elif sources.cluster is not None:
        stored = _fetch_hypernodes(sources)
    else:
        raise click.UsageError("--against hypernodes needs --hypernodes or --kube")
    hypernodes = stored.hypernodes
    if sources.nodes or sources.cluster:
        labels = list_node_labels(read_nodes(sources))
        hypernodes = tuple(resolve_selectors(row, labels) for row in hypernodes)
    tree, problems = derive_hypernode_tree([row for row in hypernodes if not row.is_unreadable])
    if not tree.nodes:
        exit_without_data([*stored.problems, ParseError("no HyperNodes found", source="witness")])
    return _LoadedWitness(tree, (*stored.problems, *problems))


def _fetch_hypernodes(sources: Sources) -> StoredHyperNodes:
    from generator.store.cluster import open_cluster  # noqa: PLC0415 - loads the Kubernetes client

    with open_cluster(sources.cluster or ClusterAccess(None, None), os.environ) as store:
        return store.read_hypernodes()


_READERS: Final = {Witness.LABELS: _read_labels, Witness.HYPERNODES: _read_hypernodes}


def _render_document(diff: WitnessDiff, against: Witness) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "WitnessDiff",
        "against": against.value,
        "agreed": diff.num_agreed,
        "rows": render_witness_rows(diff, against),
    }


def render_witness_rows(diff: WitnessDiff, against: Witness) -> list[dict[str, str]]:
    """Return the differences as JSON."""
    return [
        {
            "kind": row.kind.value,
            "node": row.node,
            "tier": row.tier,
            "witness": row.witness,
            "witnessMost": row.witness_most,
            "cables": row.cables,
            "cablesMost": row.cables_most,
            "message": _describe(row, against),
        }
        for row in diff.rows
    ]


def render_witness_text(diff: WitnessDiff, against: Witness) -> str:
    """Return the differences as a table, and how many nodes agree."""
    rows = [
        (row.kind.value, show(row.node), show(_describe(row, against), _MESSAGE_CHARS))
        for row in diff.rows
    ]
    table = f"{render_table(('KIND', 'NODE', 'DIFFERENCE'), rows)}\n" if rows else ""
    others = len({row.node for row in diff.rows if row.kind is not WitnessKind.OTHER_TIER})
    agreed = show_count(diff.num_agreed, "node")
    return f"{table}{agreed} placed as by the {against}, {others} otherwise"


def _describe(row: WitnessRow, against: Witness) -> str:
    """Return the difference as a sentence, with foreign names escaped."""
    witness, cables = show(row.witness), show(row.cables)
    match row.kind:
        case WitnessKind.NOT_IN_WITNESS:
            return f"cables place it; by the {against}, {show(row.reason, _MESSAGE_CHARS)}"
        case WitnessKind.NOT_IN_CABLES:
            return f"the {against} place it; by its cables, {show(row.reason, _MESSAGE_CHARS)}"
        case WitnessKind.OTHER_TIER:
            return f"no tier of the cables agrees with this tier of the {against}"
    text = f"{show(row.tier)} {witness} by the {against}"
    if row.witness_most not in {row.cables, row.witness}:
        text += f", whose nodes are mostly in {show(row.witness_most)}"
    text += f"; its cables are in {cables}"
    if row.cables_most not in {row.cables, row.witness}:
        text += f", whose nodes are mostly in {show(row.cables_most)} by the {against}"
    return text
