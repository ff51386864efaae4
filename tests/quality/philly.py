"""The replay of a trace as that of Microsoft's Philly clusters, under every preset."""

from __future__ import annotations

from typing import Any, Final

from generator.placement.presets import Preset
from tests.generator.scenes import run

FABRIC: Final = "4x8x16"
LOAD: Final = "0.9"
SCALE: Final = "8"


def replay_philly(num_jobs: int) -> list[dict[str, Any]]:
    """Return the statistics of each preset, and of first-fit and best-fit."""
    presets = [*map(str, Preset), "best-fit", "first-fit"]
    chosen = [word for preset in presets for word in ("--preset", preset)]
    shape = ("--fabric", FABRIC, "--scale-sizes", SCALE, "--load", LOAD, "--prefer", "leaf")
    ran = run("simulate", "jobs", "--num-jobs", num_jobs, *shape, *chosen, "-o", "json")
    assert ran.code == 0, ran.err
    rows: list[dict[str, Any]] = ran.document["presets"]
    return rows
