"""The grids of fabrics and faults, and the results of their runs.

A grid has scenarios; each runs once per seed, and each seed takes the next mix of sources.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from tests.verify.judgement import RunScore, TreeVerdict
from tests.verify.sources import MIXES, SourceMix
from topology.model.facts import Medium
from topology.synthetic import (
    FabricKind,
    FaultSpec,
    NamePolicy,
    SyntheticSpec,
    Wiring,
    build_wiring,
    derive_shape,
)

SIZES: Final = (512, 8192, 65536)
"""Approximate numbers of HCAs: hosts with three rails have slightly fewer."""


class GridSize(StrEnum):
    """Sizes of the grid."""

    QUICK = "quick"
    FULL = "full"
    ODD = "odd"
    """Fabrics that are not a regular Clos, at the two smaller sizes."""


class LossTarget(StrEnum):
    """Devices that are lost one after the other, one in each run."""

    SWITCH = "switch"
    HOST = "host"


def list_targets(target: LossTarget, wiring: Wiring) -> list[str]:
    """Return the names of all devices that can be lost."""
    devices = wiring.switches if target is LossTarget.SWITCH else wiring.hosts
    return [device.name for device in devices]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A fabric and its faults, drawn again for each seed."""

    fabric: str
    fault: str
    spec: SyntheticSpec
    faults: FaultSpec
    loss_target: LossTarget | None = None
    """An additional loss, of another device for each seed."""
    mixes: tuple[SourceMix, ...] = (SourceMix.ALL,)
    """The sources that the seeds read in turn."""

    @property
    def num_hcas(self) -> int:
        """Number of HCAs or NICs of all hosts."""
        return self.spec.num_hosts * self.spec.ports_per_host

    @property
    def grid_size(self) -> int:
        """Nominal number of HCAs."""
        return min(num for num in SIZES if self.num_hcas <= num)

    def find_seeds(self, first: int, num: int) -> range:
        """Return the seeds of its runs: `num` seeds, or one for each lost device."""
        if self.loss_target is None:
            return range(first, first + num)
        return range(len(list_targets(self.loss_target, build_wiring(self.spec))))

    def find_mix(self, seed: int) -> SourceMix:
        """Return the sources of the run with a seed."""
        return self.mixes[seed % len(self.mixes)]

    def build_faults(self, seed: int, wiring: Wiring) -> FaultSpec:
        """Return the faults of the run with a seed."""
        if self.loss_target is None:
            return self.faults
        return replace(
            self.faults, lost=(*self.faults.lost, list_targets(self.loss_target, wiring)[seed])
        )


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


def build_grid(
    size: GridSize, hcas: Sequence[int] = (), sources: Collection[SourceMix] = frozenset(SourceMix)
) -> list[Scenario]:
    """Return the scenarios of a grid: by number of HCAs, fabric, fault and names.

    The names decide with which mix of sources the seeds begin, so that two seeds read every mix of
    an InfiniBand fabric.

    Args:
        size: the size of the grid.
        hcas: numbers of HCAs to include; empty for all of the grid.
        sources: the mixes to include; fabrics whose cables none of them shows are left out.
    """
    return [
        Scenario(fabric, fault, replace(spec, names=names), faults, loss_target, mixes)
        for num_hcas in _HCAS[size]
        if not hcas or num_hcas in hcas
        for fabric, spec in (
            _build_odd_fabrics(num_hcas) if size is GridSize.ODD else _build_fabrics(num_hcas, size)
        )
        for fault, (faults, loss_target) in _build_faults(spec, size).items()
        for turn, names in enumerate(NamePolicy)
        if (mixes := _choose_mixes(spec.medium, sources, turn))
    ]


def _choose_mixes(
    medium: Medium, sources: Collection[SourceMix], turn: int
) -> tuple[SourceMix, ...]:
    """Return the mixes that a fabric of a medium has, the first `turn` of them as the last."""
    mixes = [mix for mix in MIXES[medium] if mix in sources]
    first = -turn % len(mixes) if mixes else 0
    return (*mixes[first:], *mixes[:first])


def _build_faults(
    spec: SyntheticSpec, size: GridSize
) -> dict[str, tuple[FaultSpec, LossTarget | None]]:
    """Return the faults of a fabric: each fault alone, the loss of devices, and all at once.

    In a small fabric of the full grid, each device is lost in turn; otherwise one of each rank. The
    quick grid has no fault that only shuffles the hosts, because all others shuffle them too.
    """
    faults_by_name: dict[str, tuple[FaultSpec, LossTarget | None]] = {
        fault: (faults, None)
        for fault, faults in _FAULTS.items()
        if size is not GridSize.QUICK or faults != FaultSpec(shuffle=True)
    }
    if size is GridSize.FULL and spec.num_hosts * spec.ports_per_host <= _SMALL_HCAS:
        faults_by_name |= {
            f"each {each.value} lost": (FaultSpec(shuffle=True), each) for each in LossTarget
        }
    else:
        faults_by_name["a host lost"] = FaultSpec(lose_hosts=1, shuffle=True), None
        num_ranks = sum(width > 0 for width in (1, *derive_shape(spec).widths))
        for rank, name in enumerate(_RANK_NAMES[:num_ranks], 1):
            faults_by_name[f"{name} lost"] = (
                FaultSpec(lose_switches=1, lose_rank=rank, shuffle=True),
                None,
            )
    return {**faults_by_name, "all of these": (_ALL, None)}


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
    """The worst run of a scenario."""

    seed: int
    score: RunScore


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """The results of the runs of one scenario."""

    scenario: Scenario
    scores: Mapping[int, RunScore]
    """Score per seed."""

    def count_runs(self, verdict: TreeVerdict) -> int:
        """Return the number of runs with a verdict."""
        return sum(score.verdict is verdict for score in self.scores.values())

    @property
    def num_swaps(self) -> int:
        """Number of detectable swaps in all runs."""
        return sum(score.num_swaps for score in self.scores.values())

    @property
    def num_named(self) -> int:
        """Number of detectable swaps in all runs that a finding names."""
        return sum(score.num_named for score in self.scores.values())

    @property
    def worst_run(self) -> WorstRun | None:
        """The run with the worst verdict, then with most swaps not named, then the first run.

        None if every tree is exact and every swap is named.
        """
        order = list(TreeVerdict)
        missed = {
            seed: (order.index(score.verdict), score.num_swaps - score.num_named)
            for seed, score in self.scores.items()
        }
        seed = max(sorted(missed), key=lambda seed: missed[seed])
        return WorstRun(seed, self.scores[seed]) if any(missed[seed]) else None


def render_markdown(rows: Iterable[ScenarioResult]) -> str:
    """Return the results as Markdown tables, one per number of HCAs: fabrics by faults.

    A cell has the numbers of exact, flagged and silent runs with both kinds of names.
    """
    by_size: dict[int, dict[str, dict[str, list[ScenarioResult]]]] = {}
    for row in rows:
        fabrics = by_size.setdefault(row.scenario.grid_size, {})
        fabrics.setdefault(row.scenario.fabric, {}).setdefault(row.scenario.fault, []).append(row)
    tables = []
    for num_hcas, fabrics in by_size.items():
        faults = list(
            dict.fromkeys(fault for rows_by_fault in fabrics.values() for fault in rows_by_fault)
        )
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
                        *(_render_cell(rows_by_fault.get(fault, [])) for fault in faults),
                        _render_swaps(rows_by_fault),
                    ]
                )
                for fabric, rows_by_fault in fabrics.items()
            ),
        ]
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def _render_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _render_cell(rows: Iterable[ScenarioResult]) -> str:
    results = list(rows)
    return " / ".join(
        str(sum(row.count_runs(verdict) for row in results)) for verdict in TreeVerdict if results
    )


def _render_swaps(by_fault: Mapping[str, Iterable[ScenarioResult]]) -> str:
    rows = [row for results in by_fault.values() for row in results]
    num = sum(row.num_swaps for row in rows)
    return f"{sum(row.num_named for row in rows)} of {num}" if num else "none visible"
