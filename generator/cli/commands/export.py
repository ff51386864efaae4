"""`toponaut export`: the tree in the formats of schedulers and other tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
import yaml

from generator.cli.observation import (
    LoadedObservation,
    exit_with_problems,
    read_observation,
    refuse_without_hosts,
)
from generator.cli.option_types import (
    KubernetesName,
    LabelPrefix,
    NamespaceName,
    OutputFolder,
    is_label,
)
from generator.cli.output import show_count
from generator.cli.source_options import name_options, parse_sources, source_options
from generator.outputs.catalog import Export, ExportFormat, ExportSettings, render_export
from generator.outputs.kueue import FlavorSpec
from generator.outputs.node_labels import DEFAULT_PREFIX, LabelFamily
from generator.store.object_files import YAML_DUMPER, write_file
from generator.web import build_page_document, render_page
from topology.join.fabric_join import build_fabric
from topology.model.errors import ParseError, list_some, show

_MAX_NAMES: Final = 5
_PAGE: Final = "html"
_TEXT_FORMATS: Final = "a format of its own: give no --output"


@click.command(name="export")
@click.argument("chosen", metavar="FORMAT", type=click.Choice([*map(str, ExportFormat), _PAGE]))
@source_options
@name_options
@click.option(
    "--output",
    "-o",
    type=click.Choice(["yaml", "json"]),
    help="Format of Kubernetes objects.  [default: yaml]",
)
@click.option(
    "--out",
    type=OutputFolder(),
    help="Folder to write one file to, under the name that its reader expects, instead of stdout.",
)
@click.option(
    "--name",
    type=KubernetesName(),
    default="toponaut",
    show_default=True,
    help="Name of the written object.",
)
@click.option(
    "--namespace",
    type=NamespaceName(),
    default="toponaut",
    show_default=True,
    help="Namespace of objects that have one: nfd, configmap.",
)
@click.option(
    "--label-prefix",
    type=LabelPrefix(),
    default=DEFAULT_PREFIX,
    show_default=True,
    help="Prefix of the label keys; the name of the tier follows.",
)
@click.option(
    "--compat",
    type=click.Choice([family.value for family in LabelFamily]),
    multiple=True,
    help="Write the label keys of this tool as well. Repeatable.",
)
@click.option(
    "--flavor",
    type=KubernetesName(),
    metavar="NAME",
    help="Write a ResourceFlavor of this name (kueue).",
)
@click.option(
    "--flavor-label",
    multiple=True,
    metavar="KEY=VALUE",
    help="Node label that the nodes of the ResourceFlavor have. Repeatable.",
)
@click.option(
    "--no-aliases",
    is_flag=True,
    help="Write levels of KAI without the names of the tiers, for KAI before 0.17.",
)
@click.pass_context
def command(ctx: click.Context, /, chosen: str, **options: Any) -> None:  # noqa: ANN401 - click's
    r"""Print the tree in the FORMAT of a scheduler or another tool.

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
    html             a page with the fabric and the findings, for a browser: one file, no network

    Kubernetes objects have only the fields that Toponaut owns: apply them with kubectl apply
    --server-side --field-manager=toponaut-export -f -.
    """
    settings, output, folder = _parse_settings(options), options.pop("output"), options.pop("out")
    names, previous = options.pop("tier_names"), options.pop("previous")
    read = read_observation(parse_sources(options), names_of_tiers=names, previous=previous)
    refuse_without_hosts(read)
    export = (
        _render_page(read)
        if chosen == _PAGE
        else render_export(read.observation.tree, ExportFormat(chosen), settings)
    )
    if export.text is not None and output is not None:
        raise click.UsageError(f"{chosen} has {_TEXT_FORMATS}")
    text = _render_documents(export.documents, output) if export.text is None else export.text
    if folder is None:
        click.echo(text, nl=False)
    else:
        _write(folder, export, text)
    exit_with_problems(ctx, (*read.problems, *_list_left_out(chosen, export)))


def _parse_settings(options: dict[str, Any]) -> ExportSettings:
    """Remove the settings from the parameters of the command, and return them.

    Raises:
        click.BadParameter: a label of the flavor has another form than KEY=VALUE.
        click.UsageError: labels of a flavor without a flavor, or the reverse.
    """
    flavor, rows = options.pop("flavor"), options.pop("flavor_label")
    if (flavor is None) != (not rows):
        raise click.UsageError("a ResourceFlavor needs both --flavor and --flavor-label")
    labels: dict[str, str] = {}
    for row in rows:
        key, separator, value = row.partition("=")
        if not key or not separator:
            raise click.BadParameter(f"'{show(row)}' is not KEY=VALUE", param_hint="--flavor-label")
        if not is_label(key, value):
            raise click.BadParameter(
                f"'{show(row)}' is not a label of a node", param_hint="--flavor-label"
            )
        labels[key] = value
    return ExportSettings(
        name=options.pop("name"),
        namespace=options.pop("namespace"),
        label_prefix=options.pop("label_prefix"),
        label_families=tuple(map(LabelFamily, options.pop("compat"))),
        flavor=None if flavor is None else FlavorSpec(flavor, labels),
        has_aliases=not options.pop("no_aliases"),
    )


def _render_page(read: LoadedObservation) -> Export:
    """Return the page. The fabric is joined again: an observation has no cables."""
    fabric = build_fabric(read.inputs.all_claims) if read.inputs.claims else None
    document = build_page_document(read.observation.tree, fabric, read.observation.findings)
    return Export("fabric.html", text=render_page(document))


def _render_documents(documents: Sequence[dict[str, Any]], output: str | None) -> str:
    """Return objects as YAML documents, or as one List in JSON."""
    if output == "json":
        items = {"apiVersion": "v1", "kind": "List", "items": [*documents]}
        return json.dumps(items, indent=2, ensure_ascii=True) + "\n"
    return yaml.dump_all(
        documents, Dumper=YAML_DUMPER, sort_keys=False, allow_unicode=False, explicit_start=True
    )


def _write(folder: Path, export: Export, text: str) -> None:
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
