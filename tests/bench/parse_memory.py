"""The peak memory of reading one sweep, in a process that does nothing else.

python -m tests.bench.parse_memory FILE prints the largest resident set in bytes, what the
interpreter and its modules take included.
"""

from __future__ import annotations

import subprocess  # noqa: TID251 - measures the peak of a separate process
import sys
from pathlib import Path
from typing import Final

_STATUS: Final = Path("/proc/self/status")
ROOT: Final = Path(__file__).resolve().parents[2]


def measure_peak(sweep: Path) -> int | None:
    """Return the peak in bytes; None if the system does not report it."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.parse_memory", str(sweep)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return int(done.stdout) or None


def _read_and_tell(sweep: Path) -> int:
    from generator.ingest.sweeps import parse_sweep  # noqa: PLC0415 - a caller of measure_peak needs none

    devices = parse_sweep(sweep.read_bytes(), source="").devices
    if not len(devices) or not _STATUS.exists():
        return 0
    lines = _STATUS.read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    sys.stdout.write(f"{_read_and_tell(Path(sys.argv[1]))}\n")
