"""A throw-away tree of processes with its own network, mounts and process ids.

Whatever a test starts inside, and however the test ends, nothing outlives it: the first process
of the sandbox reads a pipe that we hold, and the kernel ends all others when that one ends.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Self

READY = "ready"
# The shell is process 1 of the sandbox: it reaps orphans while it waits for cat, which ends when
# our end of the pipe closes.
_FIRST = f"mount -t tmpfs none /run && mkdir /run/netns /run/lldpd && echo {READY} && cat; exit"
# What has ended since it was listed, as commands and the children of daemons do, is no fault.
_KILL = """
set -e
pids=$(ip netns pids "$1")
for pid in $pids; do
    { read -r name < "/proc/$pid/comm"; } 2>/dev/null || continue
    case $name in
        $2) kill -s "$3" "$pid" 2>/dev/null || [ ! -e "/proc/$pid" ] ;;
    esac
done
"""


class Sandbox:
    """Runs commands in namespaces of its own. Needs root."""

    def __init__(self) -> None:
        """Start it; ready for commands when this returns."""
        self._outer = subprocess.Popen(
            ["unshare", "-n", "-m", "-p", "-f", "--kill-child", "--mount-proc", "sh", "-c", _FIRST],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._outer.stdout is not None
        assert self._outer.stdout.readline().strip() == READY
        pid = self._outer.pid
        first = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
        self._enter = ("nsenter", "-t", first, "-n", "-m", "-p")
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *ended: object) -> None:
        """End every process of the sandbox."""
        self._outer.kill()
        self._outer.communicate()
        for started in self._started:
            started.wait(timeout=10)

    def run(
        self,
        *argv: str,
        namespace: str = "",
        stdin: str = "",
        timeout_s: float = 30,
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Run a command to its end, in a named network namespace where given; return its output.

        Raises:
            AssertionError: it failed; says what it complained.
        """
        done = subprocess.run(
            self._command(argv, namespace),
            input=stdin,
            capture_output=True,
            check=False,
            text=True,
            timeout=timeout_s,
            env=env,
        )
        assert done.returncode == 0, f"{argv}: exit {done.returncode}: {done.stderr[-2000:]}"
        return done.stdout

    def kill(self, name: str, *, namespace: str, signal: str = "TERM") -> None:
        """Send a signal to the processes of a network namespace whose names match a pattern."""
        self.run("sh", "-c", _KILL, "sh", namespace, name, signal)

    def start(self, *argv: str, namespace: str = "", log: Path) -> None:
        """Start a daemon that writes to a log. Nothing of ours is left open in it."""
        with log.open("ab") as output:
            daemon = subprocess.Popen(
                self._command(argv, namespace),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._started.append(daemon)

    def outside(self, *argv: str) -> list[str]:
        """Return a command that runs among its mounts and processes, but on our network."""
        return [word for word in self._enter if word != "-n"] + list(argv)

    def _command(self, argv: tuple[str, ...], namespace: str) -> list[str]:
        inside = ("ip", "netns", "exec", namespace) if namespace else ()
        return [*self._enter, *inside, *argv]
