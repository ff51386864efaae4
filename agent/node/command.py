"""Runs commands: the only module that starts processes.

A command is an argv, never a shell line. It gets an empty stdin, a small environment and no other
file descriptor. Its output and its time are limited. When the call returns, its whole process group
has ended. The caller judges the exit code.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess  # noqa: TID251 - the one place
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Final

from runtime.stop import Stop
from topology.model.errors import CommandFailed, CommandMissing, CommandTimeout, show

DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STDERR_TAIL_BYTES: Final = 64 * 1024
TERM_GRACE_S: Final = 1.0
"""The time from SIGTERM to SIGKILL."""
STOP_GRACE_S: Final = 0.3
"""The time from SIGTERM to SIGKILL when the agent itself has to end."""
KILL_GRACE_S: Final = 1.0
"""How long a killed process may take to die; one stuck in a driver is left behind."""
_READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command that ended by itself."""

    exit_code: int
    """Negative if a signal ended the command: minus the signal's number."""
    stdout: bytes
    stderr: str
    """The last 64 KiB; bytes that are not UTF-8 are replaced."""


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """The time and the output that a command may use."""

    deadline_s: float
    max_output_bytes: int


class Runner:
    """Runs commands for the collectors."""

    def __init__(self, env: Mapping[str, str], stop: Stop | None = None) -> None:
        """Keep what all commands share.

        Args:
            env: the whole environment of every command, see `command_env`.
            stop: ends a running command early; None never does.
        """
        self._env = dict(env)
        self._stop = stop or Stop()

    def run(self, argv: Sequence[str], limits: CommandLimits) -> CommandResult:
        """Run a command to its end and return what it printed.

        Args:
            argv: the program and its arguments; the program is looked up on the commands' PATH.
            limits: the deadline is from the start to the end of output; then the group gets SIGTERM
                and, a second later, SIGKILL. A command that prints more to stdout is killed. Of
                stderr only the tail is kept.

        Raises:
            CommandMissing: the program does not exist, or cannot be started.
            CommandTimeout: the command did not end before its deadline.
            CommandFailed: the command printed more than its limit, or the agent is stopping.
        """
        if self._stop.is_set:
            raise _stopped(argv[0])
        running = _RunningCommand(argv[0], _start(argv, self._env), limits, self._stop)
        try:
            return running.finish()
        finally:
            running.close()

    def find(self, program: str) -> str | None:
        """Return the path of a program, or None if it is not found."""
        return shutil.which(program, path=self._env.get("PATH", DEFAULT_PATH))


def command_env(environ: Mapping[str, str], passed: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment of commands: PATH, the C locale, and the variables in `passed`."""
    kept = {name: environ[name] for name in passed if name in environ}
    return {"PATH": environ.get("PATH", DEFAULT_PATH), "LC_ALL": "C"} | kept


def _start(argv: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    program = shutil.which(argv[0], path=env.get("PATH", DEFAULT_PATH))
    if program is None:
        raise CommandMissing(f"{show(argv[0])}: not found, or not executable")
    try:
        return subprocess.Popen(
            [program, *argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise CommandMissing(f"{show(argv[0])}: {error}") from error


class _RunningCommand:
    """A started command, until its process group has ended."""

    def __init__(
        self, name: str, process: subprocess.Popen[bytes], limits: CommandLimits, stop: Stop
    ) -> None:
        self._name = name
        self._process = process
        self._limits = limits
        self._stop = stop
        self._leader = os.pidfd_open(process.pid)
        """Readable once the leader of the group has exited, before it is reaped."""
        self._stdout = bytearray()
        self._stderr = bytearray()

    def finish(self) -> CommandResult:
        """Read both pipes to their ends, and wait for the exit of the group's leader."""
        deadline = time.monotonic() + self._limits.deadline_s
        with selectors.DefaultSelector() as selector:
            sources: list[Stop | int | IO[bytes]] = [self._stop, self._leader, *self._pipes()]
            for source in sources:
                selector.register(source, selectors.EVENT_READ)
            while len(selector.get_map()) > 1:
                left_s = deadline - time.monotonic()
                ready = selector.select(left_s) if left_s > 0 else []
                if not ready:
                    problem = (
                        f"{show(self._name)}: did not end within {self._limits.deadline_s:g} s"
                    )
                    raise CommandTimeout(problem + tail_of(self._stderr_text()))
                for key, _ in ready:
                    if key.fileobj is self._stop:
                        raise _stopped(self._name)
                    if not self._read(key.fd):
                        selector.unregister(key.fileobj)
        # The leader is not reaped yet, so its group id cannot be reused. Kill the processes that
        # the command left behind.
        self._signal_group(signal.SIGKILL)
        exit_code = self._process.wait()
        return CommandResult(exit_code, bytes(self._stdout), self._stderr_text())

    def close(self) -> None:
        """End the rest of the process group and close the pipes; safe after any outcome."""
        if self._process.returncode is None:
            self._signal_group(signal.SIGTERM)
            with selectors.DefaultSelector() as selector:
                selector.register(self._leader, selectors.EVENT_READ)
                selector.select(STOP_GRACE_S if self._stop.is_set else TERM_GRACE_S)
            self._signal_group(signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=KILL_GRACE_S)
        os.close(self._leader)
        for pipe in self._pipes():
            pipe.close()

    def _pipes(self) -> list[IO[bytes]]:
        return [pipe for pipe in (self._process.stdout, self._process.stderr) if pipe is not None]

    def _read(self, descriptor: int) -> bool:
        """Read from a ready pipe; return whether more may come."""
        if descriptor == self._leader:
            return False
        piece = os.read(descriptor, _READ_BYTES)
        if self._process.stderr is not None and descriptor == self._process.stderr.fileno():
            self._stderr += piece
            del self._stderr[:-STDERR_TAIL_BYTES]
            return bool(piece)
        self._stdout += piece
        if len(self._stdout) > self._limits.max_output_bytes:
            most = self._limits.max_output_bytes
            raise CommandFailed(f"{show(self._name)}: printed over {most} bytes")
        return bool(piece)

    def _signal_group(self, number: signal.Signals) -> None:
        # An unprivileged agent may not signal a set-user-id program such as Debian's lldpcli.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _stderr_text(self) -> str:
        return self._stderr.decode("utf-8", "replace")


def _stopped(name: str) -> CommandFailed:
    return CommandFailed(f"{show(name)}: stopped because the agent is stopping")


def tail_of(stderr: str) -> str:
    """Return `: LAST LINE` of a command's stderr, escaped and capped; empty without a line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return f": {show(lines[-1])}" if lines else ""
