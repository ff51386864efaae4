"""The figures as a document and as a table."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Sequence
from typing import Any, Final

from generator.cli.output import render_table
from tests.bench.measurement import INFERENCE, PARSE, REFERENCE, STEPS, Measured

_MIB: Final = 1 << 20
GROWTH_FROM: Final = 8_000
"""HCAs from which growth is judged, where two such sizes are measured: below, what every call
costs hides it."""
_GROWING: Final = {**{name: (name,) for name in STEPS}, "inference": INFERENCE}


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the slope of log y over log x by least squares, None for fewer than two sizes."""
    if len({x for x, _ in points}) < 2:
        return None
    logs = [(math.log(x), math.log(y)) for x, y in points]
    return statistics.linear_regression(*zip(*logs, strict=True)).slope


def render_figures(sizes: Sequence[Measured]) -> dict[str, Any]:
    """Return everything measured; `ratio` is a step's time over the reference parse's."""
    large = [size for size in sizes if size.num_hcas >= GROWTH_FROM]
    large = large if len(large) > 1 else list(sizes)
    return {
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "sizes": [_render_size(size) for size in sizes],
        "exponents": {
            name: None if slope is None else round(slope, 3)
            for name, times in _GROWING.items()
            for slope in [exponent([(size.num_hcas, _total(size, times)) for size in large])]
        },
    }


def _total(size: Measured, steps: Sequence[str]) -> float:
    seconds = _seconds(size)
    return sum(seconds[name] for name in steps)


def _render_size(size: Measured) -> dict[str, Any]:
    reference_s = _seconds(size)[REFERENCE]
    return {
        "hcas": size.num_hcas,
        "nodes": size.num_nodes,
        "dump_bytes": size.dump_bytes,
        "rounds": size.rounds,
        "parse_speedup": round(reference_s / _seconds(size)[PARSE], 2),
        "parse_peak_of_dump": round(size.parse_peak_bytes / size.dump_bytes, 2),
        "inference_of_reference": round(_total(size, INFERENCE) / reference_s, 3),
        "steps": [
            {
                "step": step.name,
                "seconds": step.seconds,
                "ratio": round(step.seconds / reference_s, 4),
                "peak_bytes": step.peak_bytes,
            }
            for step in size.steps
        ],
    }


def _seconds(size: Measured) -> dict[str, float]:
    return {step.name: step.seconds for step in size.steps}


def text_figures(sizes: Sequence[Measured]) -> str:
    """Return one row per step and size, then how each step grows."""
    rows = []
    for size in sizes:
        reference_s = _seconds(size)[REFERENCE]
        rows += [
            (
                str(size.num_hcas),
                step.name,
                _show_seconds(step.seconds),
                f"{step.seconds / reference_s:.3g}",
                f"{step.peak_bytes / _MIB:.0f}",
            )
            for step in size.steps
        ]
    shown = render_table(("HCAS", "STEP", "TIME", "OF REFERENCE", "PEAK MIB"), rows)
    found = render_figures(sizes)
    slopes = [
        (name, "-" if slope is None else f"{slope:.2f}")
        for name, slope in found["exponents"].items()
    ]
    ratios = [
        (
            str(size["hcas"]),
            f"{size['parse_speedup']:.3g}",
            f"{size['parse_peak_of_dump']:.3g}",
            f"{size['inference_of_reference']:.3g}",
        )
        for size in found["sizes"]
    ]
    heads = ("HCAS", "PARSE: TIMES FASTER", "PARSE: PEAK OF DUMP", "INFERENCE: OF REFERENCE")
    tables = (
        shown,
        render_table(heads, ratios),
        render_table(("STEP", "GROWS AS HCAS TO THE POWER OF"), slopes),
    )
    return "\n\n".join(tables)


def _show_seconds(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
