"""Which fabrics and faults the inference is tried on, and what the runs came to.

A grid is made of scenarios; each is run once per seed. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from generator.simulation.verify import RunScore, TreeVerdict
from topology.model.facts import Medium
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    FaultSpec,
    NamePolicy,
    Wiring,
    build_wiring,
    derive_shape,
)


class LossTarget(StrEnum):
    """What is lost one after the other, one in each run."""

    SWITCH = "switch"
    HOST = "host"

    def find_names(self, wiring: Wiring) -> list[str]:
        """Return the names of all of them."""
        devices = wiring.switches if self is LossTarget.SWITCH else wiring.hosts
        return [device.name for device in devices]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A fabric and what goes wrong in it, drawn anew for each seed."""

    fabric: str
    fault: str
    spec: SyntheticSpec
    faults: FaultSpec
    loss_target: LossTarget | None = None
    """What is lost besides, another one for each seed."""

    @property
    def num_hcas(self) -> int:
        """HCAs, or NICs, of all hosts."""
        return self.spec.num_hosts * self.spec.ports_per_host

    def find_seeds(self, first: int, num: int) -> range:
        """Return the seeds of its runs: as many as asked for, or one for each that is lost."""
        if self.loss_target is None:
            return range(first, first + num)
        return range(len(self.loss_target.find_names(build_wiring(self.spec))))

    def build_faults(self, seed: int, wiring: Wiring) -> FaultSpec:
        """Return what goes wrong in the run of a seed."""
        if self.loss_target is None:
            return self.faults
        return replace(
            self.faults, lost=(*self.faults.lost, self.loss_target.find_names(wiring)[seed])
        )


class GridSize(StrEnum):
    """How much of the grid is run."""

    QUICK = "quick"
    FULL = "full"
    ODD = "odd"
    """Fabrics that are no regular Clos, at the two smaller sizes."""


SIZES: Final = (512, 8192, 65536)
"""Numbers of HCAs, near enough: hosts of three rails do not fill them."""
_HCAS: Final = {GridSize.QUICK: (512,), GridSize.FULL: SIZES, GridSize.ODD: (512, 8192)}
_RAILS: Final = {GridSize.QUICK: (1, 3, 8), GridSize.FULL: tuple(range(1, 9))}
_PLANE_RAILS: Final = {GridSize.QUICK: (1, 4), GridSize.FULL: (1, 2, 4, 8)}
_FAT_TREE_TIERS: Final = (2, 3, 4)
_RADICES: Final = {512: 32, 8192: 64, 65536: 64}
_DRAGONFLY_RADICES: Final = {512: 16, 8192: 32, 65536: 64}
_SMALL_HCAS: Final = 512
_RANK_NAMES: Final = ("a leaf", "a spine", "a core", "a second core")
_FAULTS: Final = {
    "none": FaultSpec(),
    "hosts shuffled": FaultSpec(shuffle=True),
    "1 % of links lost": FaultSpec(lose_links=0.01, shuffle=True),
    "10 % of links lost": FaultSpec(lose_links=0.1, shuffle=True),
    "5 % of cables swapped": FaultSpec(swap=0.05, shuffle=True),
    "20 % of hosts silent": FaultSpec(silent=0.2, shuffle=True),
}
_ALL: Final = FaultSpec(0.1, swap=0.05, silent=0.2, lose_switches=1, lose_hosts=1, shuffle=True)


def build_grid(size: GridSize, hcas: Sequence[int] = ()) -> list[Scenario]:
    """Return the scenarios of a grid: by number of HCAs, fabric, fault and names.

    Args:
        size: which of the grids.
        hcas: the numbers of HCAs that are wanted; all of the grid where empty.
    """
    return [
        Scenario(fabric, fault, replace(spec, names=names), faults, each)
        for num_hcas in _HCAS[size]
        if not hcas or num_hcas in hcas
        for fabric, spec in (
            _build_odd_fabrics(num_hcas) if size is GridSize.ODD else _build_fabrics(num_hcas, size)
        )
        for fault, (faults, each) in _build_faults(spec, size).items()
        for names in NamePolicy
    ]


def _build_faults(
    spec: SyntheticSpec, size: GridSize
) -> dict[str, tuple[FaultSpec, LossTarget | None]]:
    """Return what goes wrong in a fabric: each fault alone, every loss of a device, all at once.

    Each device is lost in turn where that is quick, else one of each rank.
    """
    found: dict[str, tuple[FaultSpec, LossTarget | None]] = {
        fault: (faults, None) for fault, faults in _FAULTS.items()
    }
    if size is GridSize.FULL and spec.num_hosts * spec.ports_per_host <= _SMALL_HCAS:
        found |= {f"each {each.value} lost": (FaultSpec(shuffle=True), each) for each in LossTarget}
    else:
        found["a host lost"] = FaultSpec(lose_hosts=1, shuffle=True), None
        num_ranks = sum(width > 0 for width in (1, *derive_shape(spec).widths))
        for rank, name in enumerate(_RANK_NAMES[:num_ranks], 1):
            found[f"{name} lost"] = FaultSpec(lose_switches=1, lose_rank=rank, shuffle=True), None
    return {**found, "all of these": (_ALL, None)}


def _build_fabrics(num_hcas: int, size: GridSize) -> Iterator[tuple[str, SyntheticSpec]]:
    radix = _RADICES[num_hcas]
    for tiers in _FAT_TREE_TIERS:
        fitting = _find_fat_tree_radix(num_hcas, tiers)
        spec = SyntheticSpec(FabricKind.FAT_TREE, num_hcas, radix=fitting, tiers=tiers)
        yield f"fat tree, {tiers} ranks", spec
    for rails in _RAILS[size]:
        spec = SyntheticSpec(FabricKind.RAIL, num_hcas // rails, rails=rails, radix=radix)
        yield _render_count(rails, "rail"), spec
    for rails in _PLANE_RAILS[size]:
        num_hosts = num_hcas // (2 * rails)
        spec = SyntheticSpec(FabricKind.DUAL_PLANE, num_hosts, rails=rails, radix=radix)
        yield f"two planes of {_render_count(rails, 'rail')}", spec
    pairs = SyntheticSpec(FabricKind.DUAL_HOMED, num_hcas // 2, radix=radix, medium=Medium.ETHERNET)
    yield "MLAG pairs", replace(pairs, peer_links=2)
    radix = _DRAGONFLY_RADICES[num_hcas]
    yield "dragonfly+", SyntheticSpec(FabricKind.DRAGONFLY_PLUS, num_hcas, radix=radix)


def _build_odd_fabrics(num_hcas: int) -> Iterator[tuple[str, SyntheticSpec]]:
    radix = _RADICES[num_hcas]
    tree = SyntheticSpec(
        FabricKind.FAT_TREE, num_hcas, radix=_find_fat_tree_radix(num_hcas, 3), tiers=3, uplinks=2
    )
    yield "fat tree, leaves of 2 up-links", tree
    rails = SyntheticSpec(FabricKind.RAIL, num_hcas // 4, rails=4, radix=radix)
    yield "4 rails, 2 storage leaves", replace(rails, storage_leaves=2)
    yield "4 rails, a pod apart", replace(rails, islands=1)
    yield "4 rails, NVLink domains of 4", replace(rails, nvlink_hosts=4)


def _render_count(num: int, noun: str) -> str:
    return f"{num} {noun}{'s' if num > 1 else ''}"


def _find_fat_tree_radix(num_hosts: int, tiers: int) -> int:
    """Return the smallest power of two with 2 (radix / 2) ** tiers hosts or more."""
    return 2 << math.ceil(math.log2(num_hosts / 2) / tiers)


class WorstRun(NamedTuple):
    """The run that most needs a look."""

    seed: int
    score: RunScore


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """What the runs of one scenario came to."""

    scenario: Scenario
    scores: Mapping[int, RunScore]
    """Per seed."""

    def count_runs(self, verdict: TreeVerdict) -> int:
        """Return how many runs had a verdict."""
        return sum(score.verdict is verdict for score in self.scores.values())

    @property
    def num_wrong(self) -> int:
        """Nodes of all runs that are not where they belong."""
        return sum(score.num_wrong for score in self.scores.values())

    @property
    def num_swaps(self) -> int:
        """Swaps of all runs that can be seen."""
        return sum(score.num_swaps for score in self.scores.values())

    @property
    def num_named(self) -> int:
        """How many of these were named."""
        return sum(score.num_named for score in self.scores.values())

    @property
    def worst_run(self) -> WorstRun | None:
        """The worst verdict's run, then the one with most swaps unnamed, then the first.

        None where every tree is exact and every swap is named.
        """
        order = list(TreeVerdict)
        missed = {
            seed: (order.index(one.verdict), one.num_swaps - one.num_named)
            for seed, one in self.scores.items()
        }
        seed = max(sorted(missed), key=lambda seed: missed[seed])
        return WorstRun(seed, self.scores[seed]) if any(missed[seed]) else None


def render_rows(rows: Iterable[ScenarioResult], commands: Mapping[Scenario, str]) -> dict[str, Any]:
    """Return the document that `toponaut verify -o json` prints.

    Args:
        rows: one per scenario.
        commands: the command line that repeats the worst run, for scenarios that have one.
    """
    found = list(rows)
    totals = {
        verdict.value: sum(row.count_runs(verdict) for row in found) for verdict in TreeVerdict
    }
    return {
        "rows": [_render_row(row, commands.get(row.scenario)) for row in found],
        "total": {"runs": sum(totals.values()), **totals},
    }


def _render_row(row: ScenarioResult, command: str | None) -> dict[str, Any]:
    worst = row.worst_run
    return {
        "fabric": row.scenario.fabric,
        "hcas": row.scenario.num_hcas,
        "names": row.scenario.spec.names.value,
        "fault": row.scenario.fault,
        "runs": len(row.scores),
        **{verdict.value: row.count_runs(verdict) for verdict in TreeVerdict},
        "nodes_wrong": row.num_wrong,
        "swaps": {"detectable": row.num_swaps, "named": row.num_named},
        "worst": worst
        and {"seed": worst.seed, "verdict": worst.score.verdict.value, "command": command},
    }


def render_markdown(rows: Iterable[ScenarioResult]) -> str:
    """Return the rows as tables for documents, one per number of HCAs: fabrics by faults.

    A cell counts exact, flagged and silent runs under both kinds of names.
    """
    by_size: dict[int, dict[str, dict[str, list[ScenarioResult]]]] = {}
    for row in rows:
        fabrics = by_size.setdefault(_find_grid_size(row.scenario), {})
        fabrics.setdefault(row.scenario.fabric, {}).setdefault(row.scenario.fault, []).append(row)
    tables = []
    for num_hcas, fabrics in by_size.items():
        faults = list(dict.fromkeys(fault for found in fabrics.values() for fault in found))
        faults.sort(key=lambda fault: fault == "all of these")
        lines = [
            f"{num_hcas:,} HCAs:",
            "",
            _render_line(["fabric", *faults, "swaps named"]),
            _render_line(["---"] * (len(faults) + 2)),
            *(
                _render_line(
                    [
                        fabric,
                        *(_render_cell(found.get(fault, [])) for fault in faults),
                        _render_swaps(found),
                    ]
                )
                for fabric, found in fabrics.items()
            ),
        ]
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def _find_grid_size(scenario: Scenario) -> int:
    """Return the size of the grid that a scenario is of."""
    return min((num for num in SIZES if scenario.num_hcas <= num), default=scenario.num_hcas)


def _render_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _render_cell(rows: Iterable[ScenarioResult]) -> str:
    found = list(rows)
    return " / ".join(
        str(sum(row.count_runs(verdict) for row in found)) for verdict in TreeVerdict if found
    )


def _render_swaps(by_fault: Mapping[str, Iterable[ScenarioResult]]) -> str:
    rows = [row for found in by_fault.values() for row in found]
    num = sum(row.num_swaps for row in rows)
    return f"{sum(row.num_named for row in rows)} of {num}" if num else "none visible"
