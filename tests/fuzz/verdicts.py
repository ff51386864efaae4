"""Whether a parser takes an input as it should: without a crash, a hang or a blow-up of memory."""

from __future__ import annotations

import resource
import time
from typing import Final, NamedTuple

from tests.fuzz.targets import Target

MAX_CPU_S: Final = 1.0
"""Of one input; the machine may be loaded, so the time of the processor counts."""
MAX_FAIR_CPU_S: Final = 20.0
"""Of one input that takes no more than in proportion to its length: machines differ in speed."""
MAX_GROWTH_OF_CPU: Final = 2.0
"""How many times longer a byte may take in a long input than in a short one of its kind."""
MAX_GROWTH_BYTES: Final = 256 << 20
"""Of the process's peak, by one input."""


class Verdict(NamedTuple):
    """What became of one input."""

    problem: str
    """Empty where all is well."""
    cpu_s: float
    growth_bytes: int


def judge(target: Target, raw: bytes, *, shorter: bytes = b"") -> Verdict:
    """Run a target on an input and return what is wrong with that, if anything.

    Args:
        target: the parser.
        raw: the input.
        shorter: one of its kind; where it is given, slow is what takes more than in proportion.
    """
    peak_bytes, started_s = _peak_bytes(), time.process_time()
    problem = ""
    try:
        target.run(raw)
    except Exception as error:  # noqa: BLE001 - whatever it raises is what is looked for
        problem = f"{type(error).__name__}: {error}"
    cpu_s, growth_bytes = time.process_time() - started_s, _peak_bytes() - peak_bytes
    if cpu_s > MAX_CPU_S and not (shorter and _is_fair(target, len(raw), cpu_s, shorter)):
        problem = problem or f"hang: {cpu_s:.1f} s for {len(raw)} bytes"
    elif growth_bytes > MAX_GROWTH_BYTES:
        problem = problem or f"memory: {growth_bytes >> 20} MB for {len(raw)} bytes"
    return Verdict(problem, cpu_s, growth_bytes)


def _is_fair(target: Target, num_bytes: int, cpu_s: float, shorter: bytes) -> bool:
    """Return whether an input takes about as long per byte as a shorter one of its kind."""
    if cpu_s > MAX_FAIR_CPU_S:
        return False
    short_s = judge(target, shorter).cpu_s
    return cpu_s / num_bytes <= MAX_GROWTH_OF_CPU * short_s / len(shorter)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
