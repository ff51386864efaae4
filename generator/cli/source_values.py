"""The sources of a fabric, from the values of their options."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from generator.cli.connection_values import parse_access
from generator.ingest.sources import Sources
from generator.objects.topology_levels import parse_topology_levels
from generator.observe.labelled_tree import parse_label_keys
from generator.store.local_files import read_whole_file
from topology.model.errors import ConfigError, ParseError, show

_MAX_TOPOLOGY_BYTES: Final = 4 << 20


def parse_sources(options: dict[str, Any]) -> Sources:
    """Remove the options of the sources from a command's parameters, and return the sources.

    Raises:
        click.UsageError: two of the sources exclude each other.
    """
    sources = Sources(
        cluster=parse_access(options),
        reports=options.pop("reports"),
        ibnetdiscover=(*options.pop("ibnetdiscover"), *options.pop("files")),
        lldpcli=options.pop("lldpcli"),
        snmpwalk=options.pop("snmpwalk"),
        hypernodes=options.pop("hypernodes"),
        node_labels=_parse_label_keys(options.pop("node_labels"), options.pop("topology")),
        has_islands=options.pop("islands"),
        nodes=options.pop("nodes"),
        planes=options.pop("planes"),
        plane=options.pop("plane"),
    )
    if sources.hypernodes and not sources._replace(hypernodes=None).is_empty:
        raise click.UsageError("--hypernodes is already a tree: give no other source")
    if sources.node_labels and not sources._replace(node_labels=(), cluster=None).is_empty:
        raise click.UsageError("--node-labels is already a tree: give no other source")
    if sources.node_labels and not (sources.nodes or sources.cluster):
        raise click.UsageError("--node-labels needs the nodes: give --nodes or --kube")
    if sources.cluster and sources.reports:
        raise click.UsageError("--kube reads the reports of the cluster: give no --reports")
    if sources.is_tree and (sources.planes or sources.plane):
        option = "--hypernodes" if sources.hypernodes else "--node-labels"
        raise click.UsageError(f"{option} is already a tree: give no --planes and no --plane")
    if sources.has_islands and not sources.is_tree:
        raise click.UsageError("--islands is for --hypernodes, --node-labels and --topology")
    return sources


def _parse_label_keys(keys: str | None, topology: Path | None) -> tuple[str, ...]:
    """Return the label keys of an option or of an object, coarsest first.

    Raises:
        click.UsageError: both are given.
        ConfigError: they name no label keys.
    """
    if keys is not None and topology is not None:
        raise click.UsageError("give only one of --node-labels and --topology")
    if topology is not None:
        raw = read_whole_file(topology, _MAX_TOPOLOGY_BYTES)
        if isinstance(raw, ParseError):
            raise ConfigError(str(raw))
        levels = parse_topology_levels(raw, source=show(str(topology), 1024))
        return parse_label_keys(",".join(levels))
    return () if keys is None else parse_label_keys(keys)
