"""Damage to fabrics of every kind, and what the inference makes of it: python -m tests.bench.grid.

Prints the table of docs/inference.md: how many trees are exact, wrong where a finding says so, or
silently wrong. Seeds make it repeatable.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

import click

from tests.topology.judging import Verdict, claims_of, draw_scene, infer_from, judge
from tests.topology.synthetic.fabrics import seeded
from topology.facts import Medium
from topology.synthetic import FabricKind, FabricSpec, FaultSpec, Wiring, build_wiring, damage

FABRICS: Final = {
    "fat tree of 3 tiers, 128 hosts": FabricSpec(FabricKind.FAT_TREE, 128, radix=8),
    "4 rails, 64 hosts": FabricSpec(FabricKind.RAIL, 64, rails=4, radix=16),
    "8 rails, 64 hosts": FabricSpec(FabricKind.RAIL, 64, rails=8, radix=32),
    "MLAG pairs, 64 hosts": FabricSpec(FabricKind.DUAL_HOMED, 64, radix=16, medium=Medium.ETHERNET),
}
DAMAGE: Final = {
    "1 % of links lost": FaultSpec(lose_links=0.01),
    "5 % of links lost": FaultSpec(lose_links=0.05),
    "10 % of links lost": FaultSpec(lose_links=0.1),
    "3 pairs of cables exchanged": FaultSpec(num_swaps=3),
    "a switch lost": FaultSpec(lose_switches=1),
    "10 % of hosts silent": FaultSpec(silent=0.1),
    "5 % lost, 3 exchanged, a switch": FaultSpec(lose_links=0.05, num_swaps=3, lose_switches=1),
}
RANDOM: Final = "random small fabrics"
ANY: Final = "random damage"
FIRST_RANDOM_SEED: Final = 10_000
RANDOM_PER_SEED: Final = 30


class Case(NamedTuple):
    """One damaged fabric."""

    fabric: str
    damage: str
    seed: int


def cases(num_seeds: int) -> Iterator[Case]:
    """Yield the cases of the grid, row by row, then the random ones."""
    for fabric in FABRICS:
        for kind in DAMAGE:
            yield from (Case(fabric, kind, seed) for seed in range(num_seeds))
    last = FIRST_RANDOM_SEED + RANDOM_PER_SEED * num_seeds
    yield from (Case(RANDOM, ANY, seed) for seed in range(FIRST_RANDOM_SEED, last))


@cache
def _wiring(fabric: str) -> Wiring:
    return build_wiring(FABRICS[fabric])


def verdict_of(case: Case) -> Verdict | None:
    """Return how the inferred tree compares; None where a random fabric does not exist."""
    if case.fabric == RANDOM:
        scene = draw_scene(case.seed)
        if scene is None:
            return None
        damaged = scene.damaged
    else:
        damaged = damage(_wiring(case.fabric), DAMAGE[case.damage], seeded(case.seed))
    return judge(damaged, infer_from(claims_of(damaged)))


def text_grid(found: dict[tuple[str, str], Counter[Verdict]]) -> str:
    """Return the counts as a Markdown table."""
    head = "| fabric | damage | exact | flagged | silently wrong |\n|---|---|---|---|---|"
    rows = (
        f"| {fabric} | {kind} | {' | '.join(str(counts[verdict]) for verdict in Verdict)} |"
        for (fabric, kind), counts in found.items()
    )
    return "\n".join((head, *rows))


@click.command()
@click.option("--seeds", type=click.IntRange(min=1), default=40, show_default=True)
def main(seeds: int) -> None:
    """Print how exact the inferred trees of damaged synthetic fabrics are."""
    found: dict[tuple[str, str], Counter[Verdict]] = {}
    todo = list(cases(seeds))
    with multiprocessing.get_context("spawn").Pool() as pool:
        for case, verdict in zip(todo, pool.imap(verdict_of, todo, chunksize=8), strict=True):
            counts = found.setdefault((case.fabric, case.damage), Counter())
            if verdict is not None:
                counts[verdict] += 1
            if verdict is Verdict.SILENT:
                click.echo(f"silently wrong: {case}", err=True)
    click.echo(text_grid(found))


if __name__ == "__main__":
    main()
