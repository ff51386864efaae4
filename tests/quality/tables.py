"""The tables of docs/quality.md that `make quality` writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from generator.placement.presets import Preset
from tests.live.mixes import MIXES
from tests.live.schedulers import SCHEDULERS
from tests.quality.kueue_mix import measure_mix
from tests.quality.live import LOAD, NUM_NODES, measure_live
from tests.quality.live_victims import measure_live_victims
from tests.quality.philly import FABRIC, SCALE, replay_philly
from tests.quality.philly import LOAD as PHILLY_LOAD
from tests.quality.victims import SHAPE, measure_victims


def render_presets(num_jobs: int, num_gangs: int, num_cases: int) -> Iterator[str]:
    """Yield the lines on every preset."""
    yield "`make quality` measures the presets that imitate other systems, and `optimal`. A preset"
    yield "is the engine with the rules of a system, not the system itself. All rows come from one"
    yield "run and are the same in every run."
    yield ""
    yield "### A trace as of the Philly clusters"
    load = f"{float(PHILLY_LOAD):.0%}"
    yield f"{num_jobs} generated jobs with {SCALE} times their GPUs at {load} load on"
    yield f"`{FABRIC}`, where every gang prefers a leaf ([replays](jobs.md))."
    yield ""
    yield from _table(
        ("preset", "gangs", "at the lowest tier with room", "leaves used", "leaves / fewest"),
        [
            (
                row["name"],
                row["gangs"],
                f"{row['at_lowest_tier']:.1%}",
                row["leaves"],
                f"{row['over_least']:.3f}",
            )
            for row in replay_philly(num_jobs)
        ],
    )
    yield "`kubernetes` and `task-topology` know no preferred tier: without a required tier they do"
    yield "not keep a gang together. `optimal` uses a few leaves more than the tightest fit: it"
    yield "keeps top domains free first ([across islands](placement.md#across-islands))."
    yield ""
    yield "### The mix of Kueue's scheduler benchmark"
    yield f"{num_gangs} gangs on 10 racks of 64 nodes at about 80 % load. For each gang, `optimal`"
    yield "is asked for the same free capacity."
    yield ""
    mixes = [measure_mix(preset, num_gangs) for preset in Preset]
    yield from _table(
        ("preset", "placed", "at the tier of `optimal`", "racks used", "racks of `optimal`"),
        [
            (
                row.preset,
                row.num_placed,
                f"{row.num_lowest / max(1, row.num_placed):.1%}",
                row.num_racks,
                row.least_racks,
            )
            for row in mixes
        ],
    )
    yield "### Victims"
    yield f"{num_cases} full clusters `{SHAPE}`, and a gang of higher priority on each. The fewest"
    yield "victims are proved; `topologyFirst` may preempt more pods for a lower tier."
    yield ""
    rows = [measure_victims(preset, num_cases) for preset in Preset]
    yield from _table(
        ("preset", "placed", "fewest pods", "`fewestVictims`", "`topologyFirst`"),
        [
            (
                row.preset,
                f"{row.num_placed} of {row.num_cases}",
                row.least_victims,
                row.num_victims,
                row.num_for_topology,
            )
            for row in rows
        ],
    )


def render_live(num_gangs: int, num_cases: int) -> Iterator[str]:
    """Yield the lines on the real schedulers; one that is not built is named."""
    yield "## Live schedulers on both mixes"
    yield f"The real schedulers, with Toponaut's outputs, on {NUM_NODES} nodes that are filled to"
    yield f"{LOAD:.0%}. Each gets the same gangs and the same free capacity as `optimal`, and is"
    yield "asked for one domain of each tier in turn, from the lowest. So the tier is the lowest"
    yield "that it finds; the leaves show how it chooses in a domain of a higher tier."
    yield ""
    rows, missing = [], []
    for scheduler in SCHEDULERS:
        for mix in MIXES:
            try:
                row = measure_live(scheduler, mix, num_gangs)
            except pytest.skip.Exception as error:
                missing.append(f"{scheduler}: not run: {error}")
                break
            rows.append(
                (
                    *(scheduler, mix, f"{row.num_placed} of {row.num_gangs}"),
                    f"{row.num_lowest / max(1, row.num_placed):.1%}",
                    *(row.num_leaves, row.least_leaves),
                    f"{row.num_leaves / max(1, row.least_leaves):.3f}",
                )
            )
    yield from _table(
        (
            *("scheduler", "mix", "placed", "at the lowest tier with room"),
            *("leaves used", "leaves of `optimal`", "ratio"),
        ),
        rows,
    )
    yield from missing
    yield from _render_live_victims(num_cases)


def _render_live_victims(num_cases: int) -> Iterator[str]:
    yield "### Victims of the live Kueue"
    yield f"Kueue fills 32 nodes with workloads of priority 0 to 2, {num_cases} times, and then"
    yield "admits a workload of a higher priority that needs one leaf. It evicts whole workloads;"
    yield "the fewest pods are proved by `optimal` with the same rule. kube-scheduler 1.36 evicts"
    yield "nothing for a gang with a topology; 1.37 may evict"
    yield "([kubernetes#140683](https://github.com/kubernetes/kubernetes/pull/140683)), and is not"
    yield "run here."
    yield ""
    try:
        found = measure_live_victims(num_cases)
    except pytest.skip.Exception as error:
        yield f"Not run: {error}"
        return
    yield from _table(
        ("scheduler", "placed", "pods evicted", "fewest pods"),
        [
            (
                "kueue",
                f"{found.num_placed} of {found.num_cases}",
                found.num_victims,
                found.least_victims,
            )
        ],
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(map(str, row)) + " |"
    yield ""
