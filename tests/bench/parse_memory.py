"""The peak memory of reading one sweep, in a process that does nothing else.

python -m tests.bench.parse_memory FILE prints the largest resident set in bytes, what the
interpreter and its modules take included.
"""

from __future__ import annotations

import subprocess  # noqa: TID251 - measures the peak of a separate process
import sys
from pathlib import Path
from typing import Final

from tests.bench.process_status import PEAK, read_bytes

ROOT: Final = Path(__file__).resolve().parents[2]


def measure_peak(sweep: Path) -> int:
    """Return the peak in bytes."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.parse_memory", str(sweep)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return int(done.stdout)


def _read_and_tell(sweep: Path) -> int:
    from generator.ingest.sweeps import parse_sweep  # noqa: PLC0415 - a caller of measure_peak needs none

    devices = parse_sweep(sweep.read_bytes(), source="").devices
    return read_bytes(PEAK) if len(devices) else 0


if __name__ == "__main__":
    sys.stdout.write(f"{_read_and_tell(Path(sys.argv[1]))}\n")
