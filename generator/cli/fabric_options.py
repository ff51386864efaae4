"""The options that describe a made-up fabric and its faults: of `simulate` and of `verify`."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import click

from generator.cli.options import parse_share, combine_options
from topology.model.facts import Medium
from topology.synthetic import FabricKind, SyntheticSpec, FaultSpec, NamePolicy

_COUNT = re.compile(r"\d{1,9}\Z", re.ASCII)


class SwapCount(NamedTuple):
    """How many cables exchange an end."""

    pairs: int = 0
    share: float = 0.0
    """Of all cables; as many as fit."""


def parse_swaps(text: str) -> SwapCount:
    """Return a number of pairs, or a share of all cables, of `3`, `5%` or `0.05`.

    Raises:
        click.BadParameter: another form, or more than all.
    """
    if _COUNT.match(text):
        return SwapCount(pairs=int(text))
    return SwapCount(share=parse_share(text))


def _positive_option(default: int | None) -> dict[str, Any]:
    return {"type": click.IntRange(min=1), "default": default, "show_default": default is not None}


def _natural_option(default: int) -> dict[str, Any]:
    return {"type": click.IntRange(min=0), "default": default, "show_default": True}


fabric_options: Final = combine_options(
    click.option(
        "--kind",
        type=click.Choice([kind.value for kind in FabricKind]),
        default=FabricKind.RAIL.value,
        show_default=True,
        help=(
            "One port a host (fat-tree, dragonfly-plus), one per rail (rail), one per rail in each "
            "of two fabrics (dual-plane), or two to an MLAG pair (dual-homed)."
        ),
    ),
    click.option("--hosts", **_positive_option(64), help="Number of hosts."),
    click.option("--rails", **_positive_option(8), help="Ports of a host, in each plane."),
    click.option("--radix", **_positive_option(64), help="Ports of every switch; even."),
    click.option(
        "--tiers", **_positive_option(None), help="Ranks of switches, 2 to 4.  [default: fewest]"
    ),
    click.option(
        "--uplinks",
        **_positive_option(None),
        help="Cables up from a leaf.  [default: half its ports]",
    ),
    click.option(
        "--storage-leaves",
        **_natural_option(0),
        help="Switches to which each host has one more port, as fast as the others.",
    ),
    click.option(
        "--islands", **_natural_option(0), help="Pods at the end that no cable joins to the others."
    ),
    click.option(
        "--peer-links", **_natural_option(0), help="Cables between the two leaves of an MLAG pair."
    ),
    click.option(
        "--nvlink-domain",
        **_natural_option(0),
        metavar="HOSTS",
        help="Hosts of each NVLink domain, which reports tell; 0 for none.",
    ),
    click.option(
        "--medium",
        type=click.Choice([Medium.INFINIBAND.value, Medium.ETHERNET.value]),
        default=Medium.INFINIBAND.value,
        show_default=True,
        help="What reports and sysfs show; ibnetdiscover and lldpcli are written for both.",
    ),
    click.option(
        "--names",
        type=click.Choice([policy.value for policy in NamePolicy]),
        default=NamePolicy.PLAIN.value,
        show_default=True,
        help="Whether names tell positions.",
    ),
    click.option(
        "--lose-links",
        type=parse_share,
        metavar="SHARE",
        default="0",
        help="Cables that are gone, as 1% or 0.01; at least one.",
    ),
    click.option(
        "--swap",
        type=parse_swaps,
        metavar="NUMBER|SHARE",
        default="0",
        help="Pairs of cables that exchange an end, or as 5% the share of all cables that do.",
    ),
    click.option(
        "--silent",
        type=parse_share,
        metavar="SHARE",
        default="0",
        help="Hosts without a report, as 5% or 0.05; at least one.",
    ),
    click.option(
        "--lose-switch", **_natural_option(0), help="Switches that are gone with their cables."
    ),
    click.option(
        "--lose-rank",
        **_positive_option(None),
        help="Rank of those of --lose-switch, 1 for leaves.  [default: any]",
    ),
    click.option(
        "--lose-host", **_natural_option(0), help="Hosts that are gone with their cables."
    ),
    click.option(
        "--lose",
        multiple=True,
        metavar="NAME",
        help="A switch or host that is gone with its cables, by name; repeatable.",
    ),
    click.option(
        "--shuffle-hosts",
        is_flag=True,
        help="Cable hosts in an order that neither names nor GUIDs follow.",
    ),
)


def parse_fabric_spec(options: Mapping[str, Any]) -> SyntheticSpec:
    """Return the fabric that the options describe."""
    return SyntheticSpec(
        kind=FabricKind(options["kind"]),
        num_hosts=options["hosts"],
        rails=options["rails"],
        radix=options["radix"],
        tiers=options["tiers"],
        medium=Medium(options["medium"]),
        names=NamePolicy(options["names"]),
        uplinks=options["uplinks"],
        storage_leaves=options["storage_leaves"],
        islands=options["islands"],
        peer_links=options["peer_links"],
        nvlink_hosts=options["nvlink_domain"],
    )


def parse_fault_spec(options: Mapping[str, Any]) -> FaultSpec:
    """Return the faults that the options describe.

    Raises:
        click.UsageError: one that says nothing without another.
    """
    if options["lose_rank"] and not options["lose_switch"]:
        raise click.UsageError("--lose-rank goes with --lose-switch: of how many?")
    return FaultSpec(
        lose_links=options["lose_links"],
        num_swaps=options["swap"].pairs,
        silent=options["silent"],
        lose_switches=options["lose_switch"],
        lose_hosts=options["lose_host"],
        swap=options["swap"].share,
        lose_rank=options["lose_rank"],
        lost=options["lose"],
        shuffle=options["shuffle_hosts"],
    )


@contextmanager
def open_progress(first: str, *, every_s: float = math.inf) -> Iterator[Callable[[str], None]]:
    """Yield what shows progress on stderr: one changing line on a terminal.

    Elsewhere a line is printed when `every_s` seconds went by since the last.
    """
    if not sys.stderr.isatty():
        yield _print_periodically(every_s)
        return
    from rich.console import Console  # noqa: PLC0415 - a pipe should not pay for it

    with Console(stderr=True).status(first) as status:
        yield status.update


def _print_periodically(every_s: float) -> Callable[[str], None]:
    last = time.monotonic()

    def show_progress(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= every_s:
            last = time.monotonic()
            click.echo(text, err=True)

    return show_progress
