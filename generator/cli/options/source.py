"""The options that name the sources of a fabric, shared by every command that reads one."""

from __future__ import annotations

from typing import Final

import click

from generator.cli.options.decorators import combine_options
from generator.cli.options.kube import kube_options
from generator.cli.options.value_types import InputFile, InputFolder
from generator.observe.label_presets import LABEL_PRESETS

_FOLDER: Final = InputFolder()
_FILE: Final = InputFile()
source_options: Final = combine_options(
    click.option("--reports", type=_FOLDER, help="Folder of NeighborReports from agents."),
    click.option(
        "--ibnetdiscover",
        type=_FILE,
        multiple=True,
        help="Output of ibnetdiscover, ibdiagnet or opensm. Repeatable.",
    ),
    click.option(
        "--lldpcli",
        type=_FOLDER,
        help="Folder of lldpcli output: DEVICE.neighbors.json0 (`lldpcli -f json0 show neighbors "
        "details` on the device) and DEVICE.chassis.json0 (`show chassis`).",
    ),
    click.option(
        "--snmpwalk",
        type=_FOLDER,
        help="Folder of DEVICE.snmpwalk.txt, the output of `snmpbulkwalk -On` for each switch.",
    ),
    click.option("--hypernodes", type=_FOLDER, help="Folder of HyperNode objects."),
    click.option(
        "--node-labels",
        metavar="KEYS",
        help="Labels of the nodes that describe the tree: keys separated by commas, coarsest "
        f"first, or {', '.join(LABEL_PRESETS)}. Nodes come from --nodes or --kube.",
    ),
    click.option(
        "--topology",
        type=_FILE,
        help="Topology of Kueue or KAI, ClusterNetworkTopology of Koordinator, or "
        "ClusterTopologyBinding of Grove, instead of --node-labels.",
    ),
    click.option(
        "--islands",
        is_flag=True,
        help="Domains that no label or HyperNode joins share no cable, so no gang may span them.",
    ),
    click.option(
        "--nodes",
        type=_FILE,
        help="Nodes of the cluster: output of `kubectl get nodes -o json`, or an inventory.",
    ),
    click.option(
        "--planes", type=_FILE, help="YAML file with the rules that assign ports to networks."
    ),
    click.option("--plane", help="Network to read.  [default: compute]", metavar="NAME"),
    kube_options("Read the reports and nodes of the cluster."),
    click.argument("files", nargs=-1, type=_FILE),
)
"""The options of the sources, in the order of --help."""
name_options: Final = combine_options(
    click.option(
        "--tier-names",
        help="Names of the tiers, lowest first.  [default: leaf,spine,core]",
    ),
    click.option(
        "--previous",
        type=_FILE,
        help="TopologyTree (output of `toponaut tree -o json`) whose domain names are reused.",
    ),
)
"""The options that name tiers and domains."""
tree_option: Final = click.option(
    "--tree",
    type=_FILE,
    help="TopologyTree to read instead of a source: output of `toponaut tree -o json`.",
)
"""A tree that was saved; the command gives it to `read_saved_tree`."""
