"""A real program in a process of its own."""

import os
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

STOP_DEADLINE_S = 20


class Program:
    """One program in a process of its own, which the kernel ends with the test session."""

    def __init__(self, argv: Iterable[str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self._running = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def is_running(self) -> bool:
        return self._running.poll() is None

    @property
    def rss_bytes(self) -> int:
        pages = int(Path(f"/proc/{self._running.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def running_threads(self) -> list[str]:
        """Return the threads that are not stopped by a signal."""
        tasks = Path(f"/proc/{self._running.pid}/task").iterdir()
        states = {task.name: (task / "stat").read_text().rpartition(")")[2] for task in tasks}
        return [thread for thread, state in states.items() if state.split()[0] != "T"]

    def send(self, number: signal.Signals) -> None:
        self._running.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.send(signal.SIGCONT)
        self.send(number)
        try:
            self._running.wait(timeout=STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait(timeout=STOP_DEADLINE_S)
