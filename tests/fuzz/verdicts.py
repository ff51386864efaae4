"""Judges a parser on an input: it must not crash, hang or take too much memory."""

from __future__ import annotations

import resource
import time
from typing import Final, NamedTuple

from tests.fuzz.targets import Target

MAX_CPU_S: Final = 1.0
"""CPU time limit of one input; not wall time, because the machine may be busy."""
MAX_FAIR_CPU_S: Final = 20.0
"""CPU time limit of an input whose time is proportional to its length: machines differ in speed."""
MAX_GROWTH_OF_CPU: Final = 2.0
"""Maximum factor of the time per byte of a long input over that of a short input of its kind."""
MAX_GROWTH_BYTES: Final = 256 << 20
"""Limit on the growth of the peak memory of the process by one input."""


class Verdict(NamedTuple):
    """The result of one input."""

    problem: str
    """Empty without a problem."""
    cpu_s: float
    growth_bytes: int


def judge(target: Target, raw: bytes, *, shorter: bytes = b"") -> Verdict:
    """Run a target on an input and return the verdict.

    Args:
        target: the parser.
        raw: the input.
        shorter: a shorter input of its kind. If given, an input that takes time in proportion to
            its length is not a hang.
    """
    peak_bytes, started_s = _peak_bytes(), time.process_time()
    problem = ""
    try:
        target.run(raw)
    except Exception as error:  # noqa: BLE001 - any exception is a defect
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
