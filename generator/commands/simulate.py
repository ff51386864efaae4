"""`toponaut simulate`: fabrics with known truth, as the files that people and agents collect."""

from __future__ import annotations

import random  # noqa: TID251 - the one seeded source of simulations
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from generator.options import parse_share
from generator.simulating import Simulation, fabric_files, write_folder
from topology.facts import Medium
from topology.synthetic import FabricKind, FabricSpec, FaultSpec, NamePolicy

_STEP: Final = 100


@click.group(name="simulate")
def command() -> None:
    """Make fabrics with known truth, to try the other commands on."""


def _positive(default: int | None) -> dict[str, Any]:
    return {"type": click.IntRange(min=1), "default": default, "show_default": default is not None}


def _natural(default: int) -> dict[str, Any]:
    return {"type": click.IntRange(min=0), "default": default, "show_default": True}


@command.command(name="fabric")
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in FabricKind]),
    default=FabricKind.RAIL.value,
    show_default=True,
    help="How a host meets the fabric: one port, a port per rail, or two ports.",
)
@click.option("--hosts", **_positive(64), help="Number of hosts.")
@click.option("--rails", **_positive(8), help="Ports of a host; of rail fabrics only.")
@click.option("--radix", **_positive(64), help="Ports of every switch; even.")
@click.option("--tiers", **_positive(None), help="Ranks of switches, 2 to 4.  [default: fewest]")
@click.option(
    "--medium",
    type=click.Choice([Medium.INFINIBAND.value, Medium.ETHERNET.value]),
    default=Medium.INFINIBAND.value,
    show_default=True,
    help="What reports and sysfs show; ibnetdiscover and lldpcli are written for both.",
)
@click.option(
    "--names",
    type=click.Choice([policy.value for policy in NamePolicy]),
    default=NamePolicy.PLAIN.value,
    show_default=True,
    help="Whether names tell positions.",
)
@click.option(
    "--lose-links",
    type=parse_share,
    metavar="SHARE",
    default="0",
    help="Cables that are gone, as 1% or 0.01; at least one.",
)
@click.option("--swap", **_natural(0), help="Pairs of cables that exchange an end.")
@click.option(
    "--silent",
    type=parse_share,
    metavar="SHARE",
    default="0",
    help="Hosts without a report, as 5% or 0.05; at least one.",
)
@click.option("--lose-switch", **_natural(0), help="Switches that are gone with their cables.")
@click.option("--seed", type=int, default=0, show_default=True, help="Draws what exactly breaks.")
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that is made; it appears when it is complete.",
)
@click.option("--force", is_flag=True, help="Replace an earlier simulation.")
@click.option("--sysfs-hosts", **_natural(32), help="Hosts whose sysfs is written.")
def fabric(out: Path, seed: int, *, force: bool, sysfs_hosts: int, **options: Any) -> None:  # noqa: ANN401 - click's
    """Write a fabric as reports/, nodes.yaml, ibnetdiscover/, lldpcli/, sysfs/ and truth.json.

    The truth is the tree that the cables give after all faults, and the faults. Equal options
    give equal files.
    """
    simulation = Simulation(
        spec=_spec(options),
        faults=FaultSpec(
            lose_links=options["lose_links"],
            num_swaps=options["swap"],
            silent=options["silent"],
            lose_switches=options["lose_switch"],
        ),
        make_rng=partial(random.Random, seed),
        num_sysfs_hosts=sysfs_hosts,
    )
    with _progress() as show_progress:
        num = write_folder(fabric_files(simulation), out, force=force, on_file=show_progress)
    click.echo(f"{num} files in {out}; try: toponaut tree --reports {out}/reports", err=True)


def _spec(options: dict[str, Any]) -> FabricSpec:
    return FabricSpec(
        kind=FabricKind(options["kind"]),
        num_hosts=options["hosts"],
        rails=options["rails"],
        radix=options["radix"],
        tiers=options["tiers"],
        medium=Medium(options["medium"]),
        names=NamePolicy(options["names"]),
    )


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """Yield what shows the number of files so far, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 - a pipe should not pay for it

    with Console(stderr=True).status("wiring") as status:
        yield lambda num: None if num % _STEP else status.update(f"{num} files written")
