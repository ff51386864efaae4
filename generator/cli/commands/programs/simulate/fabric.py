"""`toponaut simulate fabric`: a synthetic fabric and its faults, as files."""

from __future__ import annotations

import random  # noqa: TID251 - the seeded random source of simulations
import re
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from generator.cli import options
from generator.cli.option_types import OutputFolder, parse_share
from generator.cli.output import open_progress, show_count
from runtime.clock import utc_now
from runtime.options import Choice
from topology.model.facts import Medium
from topology.synthetic import FabricKind, FaultSpec, NamePolicy, SyntheticSpec

MAX_SEED: Final = (1 << 63) - 1
"""A negative seed would give the same faults as its absolute value."""
_MAX_HOSTS: Final = 1_000_000
_MAX_CABLES: Final = 1 << 21
"""More cables would take more memory than a machine of today has."""
_COUNT = re.compile(r"\d{1,9}\Z", re.ASCII)
_STEP: Final = 100


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


def _share(help: str) -> Any:  # noqa: A002, ANN401 - click's
    """Declare an option with a share of 0 by default."""
    return options.option(help, type=parse_share, metavar="SHARE", default="0", show_default=False)


class _SpecOptions(NamedTuple):
    """The options that describe the fabric before faults are added."""

    kind: FabricKind = options.option(
        "Ports of a host: one (fat-tree, dragonfly-plus), one per rail (rail), one per rail in "
        "each of two fabrics (dual-plane), or two to an MLAG pair (dual-homed).",
        default=FabricKind.RAIL.value,
    )
    hosts: int = options.number(1, _MAX_HOSTS, "Number of hosts.", default=64)
    rails: int = options.number(1, 64, "Ports of each host in each plane.", default=8)
    radix: int = options.number(1, 4096, "Ports of each switch; an even number.", default=64)
    tiers: int | None = options.number(
        1, 4, "Tiers of switches, 2 to 4.  [default: as few as possible]"
    )
    uplinks: int | None = options.number(
        1, 4096, "Uplinks of each leaf.  [default: half of its ports]"
    )
    storage_leaves: int = options.number(
        0,
        _MAX_HOSTS,
        "Number of storage switches. Each host has an extra port to each of them, as fast as its "
        "other ports.",
        default=0,
    )
    islands: int = options.number(
        0, _MAX_HOSTS, "Number of pods of switches that have no cable to other pods.", default=0
    )
    peer_links: int = options.number(
        0, _MAX_HOSTS, "Cables between the two leaves of an MLAG pair.", default=0
    )
    nvlink_domain: int = options.number(
        0,
        _MAX_HOSTS,
        "Number of hosts in each NVLink domain in the reports; 0 for no domains.",
        default=0,
        metavar="HOSTS",
    )
    medium: Medium = options.option(
        "Medium in reports and sysfs. Output of ibnetdiscover is always of the InfiniBand fabric, "
        "and of lldpcli and snmpbulkwalk of the Ethernet fabric, with the same cables.",
        type=Choice([Medium.INFINIBAND.value, Medium.ETHERNET.value]),
        default=Medium.INFINIBAND.value,
    )
    names: NamePolicy = options.option(
        "Whether names contain positions (plain) or not (opaque).", default=NamePolicy.PLAIN.value
    )

    def parse(self) -> SyntheticSpec:
        """Return the fabric.

        Raises:
            click.UsageError: it is too large to be simulated.
        """
        spec = SyntheticSpec(
            kind=self.kind,
            num_hosts=self.hosts,
            rails=self.rails,
            radix=self.radix,
            tiers=self.tiers,
            medium=self.medium,
            names=self.names,
            uplinks=self.uplinks,
            storage_leaves=self.storage_leaves,
            islands=self.islands,
            peer_links=self.peer_links,
            nvlink_hosts=self.nvlink_domain,
        )
        leaves = -(-spec.num_hosts * spec.ports_per_host // max(spec.num_half_ports, 1))
        leaves = max(leaves, spec.ports_per_host)
        num_cables = spec.num_hosts * (spec.ports_per_host + spec.storage_leaves) + leaves * (
            spec.num_uplinks + spec.peer_links
        )
        if num_cables > _MAX_CABLES:
            raise click.UsageError(
                f"this fabric has {num_cables:,} cables; at most {_MAX_CABLES:,} can be simulated: "
                "use fewer hosts, rails or switches"
            )
        return spec


class _FaultOptions(NamedTuple):
    """The values of the options about faults."""

    lose_links: float = _share("Share of cables to remove, such as 1% or 0.01; at least one cable.")
    swap: SwapCount = options.option(
        "Number of pairs of cables that swap an end, or share of all cables, such as 5%.",
        type=parse_swaps,
        metavar="NUMBER|SHARE",
        default="0",
        show_default=False,
    )
    silent: float = _share(
        "Share of hosts without a report, such as 5% or 0.05; at least one host."
    )
    lose_switch: int = options.number(
        0, _MAX_HOSTS, "Number of switches to remove with their cables.", default=0
    )
    lose_rank: int | None = options.number(
        1,
        4,
        "Tier of the switches that --lose-switch removes; 1 is the leaves.  [default: any]",
    )
    lose_host: int = options.number(
        0, _MAX_HOSTS, "Number of hosts to remove with their cables.", default=0
    )
    lose: tuple[str, ...] = options.option(
        "Switch or host to remove with its cables. Repeatable.", metavar="NAME"
    )
    shuffle_hosts: bool = options.option(
        "Connect hosts in an order that differs from the order of names and of GUIDs."
    )

    def parse(self) -> FaultSpec:
        """Return the faults.

        Raises:
            click.UsageError: --lose-rank is given without --lose-switch.
        """
        if self.lose_rank and not self.lose_switch:
            raise click.UsageError(
                "--lose-rank needs --lose-switch, the number of switches to remove"
            )
        return FaultSpec(
            lose_links=self.lose_links,
            num_swaps=self.swap.pairs,
            silent=self.silent,
            lose_switches=self.lose_switch,
            lose_hosts=self.lose_host,
            swap=self.swap.share,
            lose_rank=self.lose_rank,
            lost=self.lose,
            shuffle=self.shuffle_hosts,
        )


@options.command(
    "fabric",
    examples=(
        "toponaut simulate fabric --hosts 64 --rails 4 --swap 1 --out fabric",
        "toponaut simulate fabric --kind fat-tree --hosts 512 --lose-links 1% --out large",
    ),
)
def fabric(
    *,
    spec: _SpecOptions,
    faults: _FaultOptions,
    seed: int = options.number(0, MAX_SEED, "Random seed of the faults.", default=0),
    out: Path = options.option(
        "Folder to create; it appears once it is complete.", required=True, type=OutputFolder()
    ),
    force: bool = options.option("Replace an earlier simulation."),
    sysfs_hosts: int = options.number(
        0, 1_000_000, "Number of hosts whose sysfs is written.", default=32
    ),
) -> None:
    """Write a fabric as files: reports/, nodes.yaml, what tools print of it, and truth.json.

    truth.json contains the faults, and the true tree of the fabric with these faults. The same
    options always give the same files, but for the time of the reports, which is now.
    """
    from generator.simulation.fabric_files import (
        FabricSimulation,
        render_fabric_files,
        write_folder,
    )

    simulation = FabricSimulation(
        spec=spec.parse(),
        faults=faults.parse(),
        make_rng=partial(random.Random, seed),
        num_sysfs_hosts=sysfs_hosts,
        observed_at=utc_now().strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    with open_progress("connecting cables") as progress:
        num = write_folder(
            render_fabric_files(simulation),
            out,
            force=force,
            on_file=lambda num: (
                None if num % _STEP else progress.show(f"{show_count(num, 'file')} written")
            ),
        )
    click.echo(
        f"wrote {show_count(num, 'file')} to {out}; try: toponaut tree --reports {out}/reports",
        err=True,
    )
