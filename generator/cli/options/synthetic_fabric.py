"""The options of `simulate` that describe a synthetic fabric and its faults."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import click

from generator.cli.options.decorators import combine_options
from generator.cli.options.value_types import WholeNumber
from generator.cli.options.values import parse_share
from topology.model.facts import Medium
from topology.synthetic import FabricKind, NamePolicy

MAX_SEED: Final = (1 << 63) - 1
_MAX_HOSTS: Final = 1_000_000
_COUNT = re.compile(r"\d{1,9}\Z", re.ASCII)


class SwapCount(NamedTuple):
    """How many pairs of cables swap one end."""

    pairs: int = 0
    share: float = 0.0
    """Share of all cables that are swapped, 0 to 1; as many pairs as fit."""


def parse_swaps(text: str) -> SwapCount:
    """Return a number of pairs (`3`), or a share of all cables (`5%` or `0.05`).

    Raises:
        click.BadParameter: the text has another form, or is more than 100 %.
    """
    if _COUNT.match(text):
        return SwapCount(pairs=int(text))
    return SwapCount(share=parse_share(text))


def _positive_option(default: int | None, maximum: int) -> dict[str, Any]:
    number = WholeNumber(1, maximum)
    return {"type": number, "default": default, "show_default": default is not None}


def _natural_option(default: int) -> dict[str, Any]:
    return {"type": WholeNumber(0, _MAX_HOSTS), "default": default, "show_default": True}


fabric_options: Final = combine_options(
    click.option(
        "--kind",
        type=click.Choice([kind.value for kind in FabricKind]),
        default=FabricKind.RAIL.value,
        show_default=True,
        help=(
            "Ports of a host: one (fat-tree, dragonfly-plus), one per rail (rail), one per rail in "
            "each of two fabrics (dual-plane), or two to an MLAG pair (dual-homed)."
        ),
    ),
    click.option("--hosts", **_positive_option(64, _MAX_HOSTS), help="Number of hosts."),
    click.option("--rails", **_positive_option(8, 64), help="Ports of each host in each plane."),
    click.option(
        "--radix", **_positive_option(64, 4096), help="Ports of each switch; an even number."
    ),
    click.option(
        "--tiers",
        **_positive_option(None, 4),
        help="Tiers of switches, 2 to 4.  [default: as few as possible]",
    ),
    click.option(
        "--uplinks",
        **_positive_option(None, 4096),
        help="Uplinks of each leaf.  [default: half of its ports]",
    ),
    click.option(
        "--storage-leaves",
        **_natural_option(0),
        help="Number of storage switches. Each host has an extra port to each of "
        "them, as fast as its other ports.",
    ),
    click.option(
        "--islands",
        **_natural_option(0),
        help="Number of pods of switches that have no cable to other pods.",
    ),
    click.option(
        "--peer-links", **_natural_option(0), help="Cables between the two leaves of an MLAG pair."
    ),
    click.option(
        "--nvlink-domain",
        **_natural_option(0),
        metavar="HOSTS",
        help="Number of hosts in each NVLink domain in the reports; 0 for no domains.",
    ),
    click.option(
        "--medium",
        type=click.Choice([Medium.INFINIBAND.value, Medium.ETHERNET.value]),
        default=Medium.INFINIBAND.value,
        show_default=True,
        help="Medium in reports and sysfs. Output of ibnetdiscover is always of the InfiniBand "
        "fabric, and of lldpcli and snmpbulkwalk of the Ethernet fabric, with the same cables.",
    ),
    click.option(
        "--names",
        type=click.Choice([policy.value for policy in NamePolicy]),
        default=NamePolicy.PLAIN.value,
        show_default=True,
        help="Whether names contain positions (plain) or not (opaque).",
    ),
    click.option(
        "--lose-links",
        type=parse_share,
        metavar="SHARE",
        default="0",
        help="Share of cables to remove, such as 1% or 0.01; at least one cable.",
    ),
    click.option(
        "--swap",
        type=parse_swaps,
        metavar="NUMBER|SHARE",
        default="0",
        help="Number of pairs of cables that swap an end, or share of all cables, such as 5%.",
    ),
    click.option(
        "--silent",
        type=parse_share,
        metavar="SHARE",
        default="0",
        help="Share of hosts without a report, such as 5% or 0.05; at least one host.",
    ),
    click.option(
        "--lose-switch",
        **_natural_option(0),
        help="Number of switches to remove with their cables.",
    ),
    click.option(
        "--lose-rank",
        **_positive_option(None, 4),
        help="Tier of the switches that --lose-switch removes; 1 is the leaves.  [default: any]",
    ),
    click.option(
        "--lose-host", **_natural_option(0), help="Number of hosts to remove with their cables."
    ),
    click.option(
        "--lose",
        multiple=True,
        metavar="NAME",
        help="Switch or host to remove with its cables. Repeatable.",
    ),
    click.option(
        "--shuffle-hosts",
        is_flag=True,
        help="Connect hosts in an order that differs from the order of names and of GUIDs.",
    ),
)
