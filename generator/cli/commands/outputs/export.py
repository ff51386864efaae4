"""`toponaut export`: the tree in the formats of schedulers and other tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from generator.cli import options
from generator.cli.exit_codes import exit_with_problems, exit_without_data
from generator.cli.option_types import (
    OutputFolder,
    is_label,
    parse_label_prefix,
    parse_object_name,
)
from generator.cli.options import InputOptions
from generator.cli.output import render_csv, show_count
from generator.outputs.formats import (
    DEFAULT_PREFIX,
    ExportFormat,
    ExportSettings,
    FlavorSpec,
    LabelFamily,
)
from runtime.options import Choice
from topology.model.errors import ParseError, list_some, show

if TYPE_CHECKING:
    from generator.cli.observation import LoadedObservation
    from generator.outputs.catalog import Export

_MAX_NAMES: Final = 5
_PAGE: Final = "html"
_CABLING: Final = "cabling"
_INTERFACE: Final = "dcim.interface"
CABLING_HEADER: Final = (
    *("side_a_device", "side_a_type", "side_a_name", "side_b_device", "side_b_type"),
    *("side_b_name", "status"),
)
"""Columns of NetBox's import of cables; `toponaut diff --cabling` reads them too."""


class _SettingsOptions(NamedTuple):
    """The values of the options about what is written."""

    name: str = options.option(
        "Name of the written object.", type=parse_object_name, metavar="NAME", default="toponaut"
    )
    namespace: str = options.namespace(
        "Namespace of objects that have one: nfd, configmap.",
        default="toponaut",
    )
    label_prefix: str = options.option(
        "Prefix of the label keys; the name of the tier follows.",
        type=parse_label_prefix,
        metavar="PREFIX",
        default=DEFAULT_PREFIX,
    )
    compat: tuple[LabelFamily, ...] = options.option(
        "Write the label keys of this tool as well. Repeatable."
    )
    flavor: str | None = options.option(
        "Write a ResourceFlavor of this name (kueue).", type=parse_object_name, metavar="NAME"
    )
    flavor_label: tuple[str, ...] = options.option(
        "Node label that the nodes of the ResourceFlavor have. Repeatable.", metavar="KEY=VALUE"
    )
    no_padding: bool = options.option(
        "Write numbers in the values of labels as they are, not with four digits (labels)."
    )
    no_aliases: bool = options.option(
        "Write levels of KAI without the names of the tiers, for KAI before 0.17."
    )

    def parse(self) -> ExportSettings:
        """Return the settings.

        Raises:
            click.BadParameter: a label of the flavor has another form than KEY=VALUE.
            click.UsageError: labels of a flavor without a flavor, or the reverse.
        """
        if (self.flavor is None) != (not self.flavor_label):
            raise click.UsageError("a ResourceFlavor needs both --flavor and --flavor-label")
        labels = dict(map(_parse_flavor_label, self.flavor_label))
        return ExportSettings(
            name=self.name,
            namespace=self.namespace,
            label_prefix=self.label_prefix,
            label_families=self.compat,
            is_padded=not self.no_padding,
            flavor=None if self.flavor is None else FlavorSpec(self.flavor, labels),
            has_aliases=not self.no_aliases,
        )


def _parse_flavor_label(row: str) -> tuple[str, str]:
    key, separator, value = row.partition("=")
    if not key or not separator:
        raise click.BadParameter(f"'{show(row)}' is not KEY=VALUE", param_hint="--flavor-label")
    if not is_label(key, value):
        raise click.BadParameter(
            f"'{show(row)}' is not a label of a node", param_hint="--flavor-label"
        )
    return key, value


@options.command(
    "export",
    examples=(
        "toponaut export slurm-tree --reports fabric/reports",
        "toponaut export labels --reports fabric/reports --nodes fabric/nodes.yaml --out labels",
    ),
)
def command(
    *,
    chosen: str = options.argument(
        metavar="FORMAT", type=Choice([*map(str, ExportFormat), _PAGE, _CABLING])
    ),
    sources: InputOptions,
    tree: Path | None = options.TREE,
    tier_names: str | None = options.TIER_NAMES,
    previous: Path | None = options.PREVIOUS,
    output: str | None = options.option(
        "Format of Kubernetes objects.  [default: yaml]",
        "--output",
        "-o",
        type=Choice(["yaml", "json"]),
    ),
    out: Path | None = options.option(
        "Folder to write one file to, under the name that its reader expects, instead of stdout.",
        type=OutputFolder(),
    ),
    settings: _SettingsOptions,
) -> None:
    """Print the tree in the FORMAT of a scheduler or another tool.

    \b
    hypernodes       HyperNodes of Volcano
    labels           labels of nodes, one key per tier
    kueue            Topology, and a ResourceFlavor with --flavor
    kai              Topology of KAI
    koordinator      ClusterNetworkTopology
    grove            ClusterTopologyBinding for the Topology of KAI
    slurm-tree       topology.conf of topology/tree
    slurm-block      topology.conf of topology/block
    slurm-yaml       topology.yaml of Slurm 25.05 and newer, with both
    slinky           node annotations of Slinky
    nfd              NodeFeatures of Node Feature Discovery
    configmap        the TopologyTree in a ConfigMap
    topograph        topograph's graph in JSON
    dot, graphml     a drawing of the tree
    html             a page with the fabric and the findings, in one HTML file
    cabling          the cables of today as a plan, for diff --cabling and NetBox's import

    Kubernetes objects have only the fields that Toponaut owns: apply them with kubectl apply
    --server-side --field-manager=toponaut-export -f -.
    """  # noqa: D301 - click's mark for lines that stay as they are
    from generator.cli.observation import (
        parse_sources,
        read_observation,
        read_saved_tree,
        refuse_without_hosts,
    )
    from generator.outputs.catalog import render_export

    parsed, given = settings.parse(), parse_sources(sources)
    if tree is None:
        read = read_observation(given, names_of_tiers=tier_names, previous=previous)
    elif tier_names or previous or given.planes or given.plane:
        raise click.UsageError(
            "--tree has its own names: give no --tier-names, --previous, --planes and --plane"
        )
    else:
        read = read_saved_tree(tree, given, is_restricted=True)
    refuse_without_hosts(read)
    if chosen == _PAGE:
        export = _render_page(read)
    elif chosen == _CABLING:
        export = _render_cabling(read)
    else:
        export = render_export(read.observation.tree, ExportFormat(chosen), parsed)
    problems = (*read.problems, *_list_left_out(chosen, export))
    if export.is_empty:
        empty = f"no node has a place that {chosen} can hold: nothing is written"
        exit_without_data([*problems, ParseError(empty, source="tree")])
    if export.text is not None and output is not None:
        raise click.UsageError(f"{chosen} has a format of its own: give no --output")
    text = _render_documents(export.documents, output) if export.text is None else export.text
    if out is None:
        click.echo(text, nl=False)
    else:
        _write(out, export, text)
    exit_with_problems(problems)


def _render_page(read: LoadedObservation) -> Export:
    """Return the page; without cables and planes if only a tree was read."""
    from generator.jobs.free_by_domain import count_gpus
    from generator.outputs.catalog import Export
    from generator.web import build_page_document, render_page
    from topology.findings.impact import add_workloads

    tree, inventory = read.observation.tree, read.inputs.inventory
    gpus = count_gpus(node.spec for node in inventory.nodes) if inventory else None
    findings = add_workloads(read.observation.findings, tree, gpus=gpus, gangs=None)
    document = build_page_document(tree, read.split, findings)
    return Export("fabric.html", text=render_page(document))


def _render_cabling(read: LoadedObservation) -> Export:
    """Return the cables of all networks as a plan.

    Raises:
        click.UsageError: only a tree was read.
    """
    from generator.outputs.catalog import Export
    from topology.cabling.plan_diff import list_cables

    if read.split is None:
        raise click.UsageError("a saved tree, HyperNodes and labels have no cables: give a source")
    rows = [
        (row.device_a, _INTERFACE, row.port_a, row.device_b, _INTERFACE, row.port_b, "connected")
        for row in list_cables(read.split.fabric)
    ]
    return Export("cabling.csv", text=render_csv(CABLING_HEADER, rows))


def _render_documents(documents: Sequence[dict[str, Any]], output: str | None) -> str:
    """Return objects as YAML documents, or as one List in JSON."""
    import yaml

    from generator.store.object_files import YAML_DUMPER

    if output == "json":
        items = {"apiVersion": "v1", "kind": "List", "items": [*documents]}
        return json.dumps(items, indent=2, ensure_ascii=True) + "\n"
    return yaml.dump_all(
        documents, Dumper=YAML_DUMPER, sort_keys=False, allow_unicode=False, explicit_start=True
    )


def _write(folder: Path, export: Export, text: str) -> None:
    from generator.store.object_files import write_file

    path = folder / export.file_name
    is_changed = write_file(path, text)
    what = show_count(len(export.documents), "object") if export.text is None else "the topology"
    state = f"wrote {what} to" if is_changed else "unchanged:"
    click.echo(f"{state} {show(str(path), 1024)}", err=True)


def _list_left_out(chosen: str, export: Export) -> tuple[ParseError, ...]:
    if not export.left_out:
        return ()
    names = list_some([show(name) for name in export.left_out], _MAX_NAMES)
    what = show_count(len(export.left_out), "name")
    return (ParseError(f"{what} that {chosen} cannot hold: {names}", source="tree"),)
