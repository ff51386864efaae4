"""The memory of a process, as Linux reports it: proc(5)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PEAK: Final = "VmHWM"
"""The largest resident set so far."""
HELD: Final = "VmRSS"


def read_bytes(field: str, pid: int | str = "self") -> int:
    """Return a field of the status of a process."""
    rows = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next(int(row.split()[1]) << 10 for row in rows if row.startswith(f"{field}:"))


def forget_peak() -> None:
    """Make the kernel measure the peak of this process from here on."""
    Path("/proc/self/clear_refs").write_text("5")
