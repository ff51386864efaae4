"""The figures of the benchmark of source mixes: compared with their goals, and shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from generator.cli.output import render_table
from tests.bench.measurement import exponent

SWEEP: Final = "sweep"
LISTED: Final = "sweep + node list"
FIRST: Final = "first"
NOTHING: Final = "nothing"
MIXES: Final[dict[str, tuple[str, ...]]] = {
    SWEEP: ("sweep",),
    LISTED: ("sweep", "nodes"),
    "sweep + reports": ("sweep", "hca_reports"),
    "sweep + node list + reports": ("sweep", "nodes", "hca_reports"),
    "LLDP of both ends": ("lldp_reports",),
    "all": ("sweep", "nodes", "all_reports"),
}
"""By name: the files of the mix."""
MAX_OF_SWEEP: Final = 3.0
"""Goal: the time of a mix with a sweep, over that of the sweep alone; of `serve`, of a round in
which the same changed."""
MAX_OF_REFERENCE: Final = 2.0
"""Goal: the time of the command with a sweep and a node list at LARGE HCAs, over the reference."""
MAX_PEAK_MIB: Final = 700.0
"""Goal: the peak of a command at LARGE HCAs."""
MAX_EXPONENT: Final = 1.15
LARGE: Final = 65536
_MIB: Final = 1 << 20


class MixFigure(NamedTuple):
    """One mix at one size."""

    num_hcas: int
    lost_links: float
    """The share of links that are lost."""
    mix: str
    command_s: float
    """Processor time of `toponaut tree` with the files of the mix."""
    infer_s: float
    """Its part from the inputs in memory to the tree and the findings."""
    peak_bytes: int
    """Largest resident set of the command."""
    reference_s: float
    """The reference parse of the sweep of the same fabric."""


class RoundFigure(NamedTuple):
    """The time of one round of `toponaut serve`, by fabric size, sources and what changed."""

    num_hcas: int
    mix: str
    change: str
    seconds: float


def render(figures: Sequence[MixFigure], rounds: Sequence[RoundFigure]) -> dict[str, Any]:
    """Return the figures as plain rows, and how the times grow."""
    sweep_s = {(one.num_hcas, one.lost_links): one.command_s for one in figures if one.mix == SWEEP}
    same_round_s = {(one.num_hcas, one.change): one.seconds for one in rounds if one.mix == SWEEP}
    found = {
        "mixes": [
            {
                **one._asdict(),
                "of_reference": round(one.command_s / one.reference_s, 2),
                "of_sweep": _ratio(one.command_s, sweep_s.get((one.num_hcas, one.lost_links))),
            }
            for one in figures
        ],
        "rounds": [
            {
                **one._asdict(),
                "of_sweep": _ratio(one.seconds, same_round_s.get((one.num_hcas, one.change))),
            }
            for one in rounds
        ],
        "exponents": {
            **_exponents(figures, _title, lambda one: one.infer_s),
            **_exponents(
                [one for one in rounds if one.change != NOTHING],
                lambda one: f"{one.mix}, serve: {one.change}",
                lambda one: one.seconds,
            ),
        },
    }
    return {**found, "goals": [goal._asdict() for goal in _compare_with_goals(found)]}


def _ratio(seconds: float, of: float | None) -> float | None:
    return None if of is None else round(seconds / of, 2)


def _title(one: MixFigure) -> str:
    return f"{one.mix}, {one.lost_links:.0%} lost" if one.lost_links else one.mix


class Goal(NamedTuple):
    """What a figure should be at most."""

    name: str
    limit: float
    found: float

    @property
    def is_met(self) -> bool:
        """Whether the figure is within the limit."""
        return self.found <= self.limit


def _compare_with_goals(found: Mapping[str, Any]) -> Iterator[Goal]:
    """Yield each goal that the measured sizes and mixes can show, with what was found."""
    for row in found["mixes"]:
        lost = f", {row['lost_links']:.0%} lost" if row["lost_links"] else ""
        title = f"{row['mix']}{lost}, {row['num_hcas']} HCAs"
        if row["of_sweep"] is not None and "sweep" in MIXES[row["mix"]]:
            yield Goal(f"{title}: command, of the sweep alone", MAX_OF_SWEEP, row["of_sweep"])
        if row["num_hcas"] == LARGE:
            yield Goal(f"{title}: peak MiB", MAX_PEAK_MIB, round(row["peak_bytes"] / _MIB))
            if row["mix"] == LISTED:
                ratio = row["of_reference"]
                yield Goal(f"{title}: command, of the reference", MAX_OF_REFERENCE, ratio)
    for row in found["rounds"]:
        if row["change"] == NOTHING:
            continue  # a few milliseconds
        if row["of_sweep"] is not None and "sweep" in MIXES[row["mix"]]:
            title = f"{row['mix']}, {row['num_hcas']} HCAs, serve: {row['change']}"
            yield Goal(
                f"{title}, of this round with the sweep alone", MAX_OF_SWEEP, row["of_sweep"]
            )
    for name, slope in found["exponents"].items():
        if slope is not None:
            yield Goal(f"{name}: exponent", MAX_EXPONENT, slope)


def _exponents(
    figures: Sequence[Any], name: Callable[[Any], str], seconds: Callable[[Any], float]
) -> dict[str, float | None]:
    """Return the growth exponent of each row that has two or more sizes of at least 8,000 HCAs."""
    points: dict[str, list[tuple[float, float]]] = {}
    large = [one for one in figures if one.num_hcas >= 8_000]
    chosen = large if len({one.num_hcas for one in large}) > 1 else figures
    for one in chosen:
        points.setdefault(name(one), []).append((one.num_hcas, max(seconds(one), 1e-4)))
    slopes = {key: exponent(rows) for key, rows in points.items()}
    return {key: None if slope is None else round(slope, 2) for key, slope in slopes.items()}


def render_text(found: dict[str, Any]) -> str:
    """Return the figures as tables."""
    mixes = [
        (
            str(row["num_hcas"]),
            f"{row['lost_links']:.0%}",
            row["mix"],
            f"{row['command_s']:.2f} s",
            f"{row['infer_s']:.2f} s",
            "-" if row["of_sweep"] is None else f"{row['of_sweep']:.2f}",
            f"{row['of_reference']:.2f}",
            f"{row['peak_bytes'] / _MIB:.0f}",
        )
        for row in found["mixes"]
    ]
    rounds = [
        (
            str(row["num_hcas"]),
            row["mix"],
            row["change"],
            f"{row['seconds']:.3f} s",
            "-" if row["of_sweep"] is None else f"{row['of_sweep']:.2f}",
        )
        for row in found["rounds"]
    ]
    slopes = [
        (name, "-" if slope is None else f"{slope}") for name, slope in found["exponents"].items()
    ]
    goals = [
        (goal["name"], f"{goal['limit']:g}", f"{goal['found']:g}", "no")
        for goal in found["goals"]
        if not Goal(**goal).is_met
    ]
    heads = (
        "HCAS",
        "LOST",
        "SOURCES",
        "COMMAND",
        "INFERENCE",
        "OF SWEEP",
        "OF REFERENCE",
        "PEAK MIB",
    )
    tables = (
        render_table(heads, mixes),
        render_table(("HCAS", "SOURCES", "CHANGE", "ROUND", "OF SWEEP"), rounds),
        render_table(("INFERENCE", "GROWS AS HCAS TO THE POWER OF"), slopes),
        *([render_table(("GOAL", "AT MOST", "FOUND", "MET"), goals)] if goals else []),
        f"{len(found['goals']) - len(goals)} of {len(found['goals'])} goals are met.",
    )
    return "\n\n".join(tables)
