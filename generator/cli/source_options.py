"""The options that name the sources of a fabric, shared by every command that reads one."""

from __future__ import annotations

from typing import Any, Final

import click

from generator.cli.kube_options import kube_options, parse_access
from generator.cli.option_types import InputFile, InputFolder
from generator.cli.options import combine_options
from generator.ingest.sources import Sources

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
        nodes=options.pop("nodes"),
        planes=options.pop("planes"),
        plane=options.pop("plane"),
    )
    if sources.hypernodes and not sources._replace(hypernodes=None).is_empty:
        raise click.UsageError("--hypernodes is already a tree: give no other source")
    if sources.cluster and sources.reports:
        raise click.UsageError("--kube reads the reports of the cluster: give no --reports")
    if sources.hypernodes and (sources.planes or sources.plane):
        raise click.UsageError("--hypernodes is already a tree: give no --planes and no --plane")
    return sources
