"""`toponaut export`: its options and its help."""

from __future__ import annotations

from typing import Any, Final

import click

from generator.cli.options.source import name_options, source_options, tree_option
from generator.cli.options.value_types import (
    KubernetesName,
    LabelPrefix,
    NamespaceName,
    OutputFolder,
)
from generator.outputs.formats import ExportFormat
from generator.outputs.node_labels import DEFAULT_PREFIX, LabelFamily

_PAGE: Final = "html"


@click.command(name="export")
@click.argument("chosen", metavar="FORMAT", type=click.Choice([*map(str, ExportFormat), _PAGE]))
@source_options
@tree_option
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
    "--no-padding",
    is_flag=True,
    help="Write numbers in the values of labels as they are, not with four digits (labels).",
)
@click.option(
    "--no-aliases",
    is_flag=True,
    help="Write levels of KAI without the names of the tiers, for KAI before 0.17.",
)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
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

    Kubernetes objects have only the fields that Toponaut owns: apply them with kubectl apply
    --server-side --field-manager=toponaut-export -f -.
    """  # noqa: D301 - click's mark for lines that stay as they are
    from generator.cli.commands.export import run

    run(ctx, **options)
