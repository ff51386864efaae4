"""Whether a parser takes an input as it should: without a crash, a hang or a blow-up of memory."""

from __future__ import annotations

import resource
import time
from typing import Final, NamedTuple

from tests.fuzz.targets import Target

MAX_CPU_S: Final = 1.0
"""Of one input; the machine may be loaded, so the time of the processor counts."""
MAX_GROWTH_BYTES: Final = 256 << 20
"""Of the process's peak, by one input."""


class Verdict(NamedTuple):
    """What became of one input."""

    problem: str
    """Empty where all is well."""
    cpu_s: float
    growth_bytes: int


def judge(target: Target, raw: bytes) -> Verdict:
    """Run a target on an input and return what is wrong with that, if anything."""
    peak_bytes, started_s = _peak_bytes(), time.process_time()
    problem = ""
    try:
        target.run(raw)
    except Exception as error:  # noqa: BLE001 - whatever it raises is what is looked for
        problem = f"{type(error).__name__}: {error}"
    cpu_s, growth_bytes = time.process_time() - started_s, _peak_bytes() - peak_bytes
    if cpu_s > MAX_CPU_S:
        problem = problem or f"hang: {cpu_s:.1f} s for {len(raw)} bytes"
    elif growth_bytes > MAX_GROWTH_BYTES:
        problem = problem or f"memory: {growth_bytes >> 20} MB for {len(raw)} bytes"
    return Verdict(problem, cpu_s, growth_bytes)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
