"""One run of atheris on one parser: python -m tests.fuzz.engine NAME CORPUS FAILURES SECONDS.

Runs in a separate process, because libFuzzer ends its process, and because the parsers must be
instrumented when they are imported.
"""

from __future__ import annotations

import logging
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

MAX_BYTES: Final = 16 << 10  # short inputs run faster; `long_input` makes the long ones
SUSPECT_CPU_S: Final = 1.0
SUSPECT_GROWTH_KIB: Final = 256 << 10
HANG_S: Final = 60
"""Seconds of wall time after which an input counts as a hang."""
MAX_MEMORY_MB: Final = 4096


class SuspectInput(Exception):  # noqa: N818 - it may be harmless
    """An input that took long or much memory. Instrumented code is slow, so `judge` decides."""


def watched(run: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Return a target that also fails on an input that takes suspiciously long or much memory."""

    def once(raw: bytes) -> None:
        started_s, before = time.process_time(), _peak_kib()
        run(raw)
        if time.process_time() - started_s > SUSPECT_CPU_S:
            raise SuspectInput("slow")
        if _peak_kib() - before > SUSPECT_GROWTH_KIB:
            raise SuspectInput("large")

    return once


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(name: str, corpus: str, failures: str, seconds: str) -> None:
    """Fuzz until the time is up or an input fails; saves that input. Never returns."""
    import atheris  # noqa: PLC0415 - only `make fuzz` installs it

    with atheris.instrument_imports(include=["agent", "generator", "topology"]):
        from tests.fuzz.targets import TARGETS  # noqa: PLC0415 - instrumented
    logging.disable()  # what the programs log is no result
    folder = Path(corpus)
    options = {
        "max_total_time": seconds,
        "max_len": MAX_BYTES,
        "timeout": HANG_S,
        "rss_limit_mb": MAX_MEMORY_MB,
        "artifact_prefix": f"{failures}/",
        "print_final_stats": 1,
    }
    words = folder.parent / "words"
    if words.stat().st_size:
        options["dict"] = words
    arguments = [f"-{key}={value}" for key, value in options.items()]
    atheris.Setup(
        [sys.argv[0], *arguments, str(folder)], watched(TARGETS[name].run), internal_libfuzzer=True
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
