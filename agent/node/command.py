"""Runs commands: the only module that starts processes.

A command is an argv, never a shell line. It gets an empty stdin, a small environment and no other
file descriptor. Its output is capped, its time is limited, and its whole process group is gone when
the call returns. The caller judges the exit code.
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
from dataclasses import dataclass, field
from typing import IO, Final, Protocol

from runtime.stop import Stop
from topology.model.errors import CommandFailed, CommandMissing, CommandTimeout, show

DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STDERR_TAIL_BYTES: Final = 64 * 1024
TERM_GRACE_S: Final = 1.0
"""From SIGTERM to SIGKILL."""
STOP_GRACE_S: Final = 0.3
"""From SIGTERM to SIGKILL when the agent itself has to end."""
KILL_GRACE_S: Final = 1.0
"""How long a killed process may take to die; one stuck in a driver is left behind."""
_READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command that ended by itself ended."""

    exit_code: int
    """Negative: minus the signal that ended it."""
    stdout: bytes
    stderr: str
    """The last 64 KiB, undecodable bytes replaced."""


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """What a command may cost."""

    deadline_s: float
    max_output_bytes: int


class Runner(Protocol):
    """Runs a command; what a collector sees of processes."""

    def run(self, argv: Sequence[str], limits: CommandLimits) -> CommandResult:
        """Return how the command ended.

        Raises:
            CommandMissing: there is no such program, or it may not be started.
            CommandTimeout: it did not end before its deadline.
            CommandFailed: it printed more than its cap, or the agent has to end.
        """

    def find(self, program: str) -> str | None:
        """Return the path under which a program would be started, None where there is none."""


class ProcessRunner:
    """The runner that starts real processes."""

    def __init__(self, env: Mapping[str, str], stop: Stop | None = None) -> None:
        """Keep the environment that every command gets, see `command_env`, and what ends them."""
        self._env = dict(env)
        self._stop = stop or Stop()

    def run(self, argv: Sequence[str], limits: CommandLimits) -> CommandResult:
        """Run one command, see `run_command`."""
        return run_command(
            argv,
            deadline_s=limits.deadline_s,
            max_output_bytes=limits.max_output_bytes,
            env=self._env,
            stop=self._stop,
        )

    def find(self, program: str) -> str | None:
        """Look a program up on the command's PATH."""
        return shutil.which(program, path=self._env.get("PATH", DEFAULT_PATH))


def command_env(environ: Mapping[str, str], passed: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment of commands: PATH, the C locale, and the variables named."""
    kept = {name: environ[name] for name in passed if name in environ}
    return {"PATH": environ.get("PATH", DEFAULT_PATH), "LC_ALL": "C"} | kept


def run_command(
    argv: Sequence[str],
    *,
    deadline_s: float,
    max_output_bytes: int,
    env: Mapping[str, str],
    stop: Stop,
) -> CommandResult:
    """Run a command to its end and return what it printed.

    Args:
        argv: the program and its arguments; the program is looked up on `env`'s PATH.
        deadline_s: from start to end of output; then the group gets SIGTERM and, a second
            later, SIGKILL.
        max_output_bytes: of stdout; a command that prints more is killed. Of stderr only the
            tail is kept.
        env: the whole environment of the command.
        stop: ends it before its time.

    Raises:
        CommandMissing: there is no such program, or it may not be started.
        CommandTimeout: it did not end before its deadline.
        CommandFailed: it printed more than its cap, or was stopped.
    """
    if stop.is_set:
        raise _stopped(argv[0])
    process = _start(argv, env)
    running = _RunningCommand(
        argv[0], process, time.monotonic() + deadline_s, max_output_bytes, stop
    )
    try:
        return running.finish(deadline_s)
    finally:
        running.close()


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


@dataclass(slots=True)
class _RunningCommand:
    """One started command, from its first byte to the death of its group."""

    name: str
    process: subprocess.Popen[bytes]
    deadline: float
    max_output_bytes: int
    stop: Stop
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)

    def finish(self, deadline_s: float) -> CommandResult:
        if not (self._drain() and self._await_exit(self.deadline, self.stop)):
            problem = f"{show(self.name)}: did not end within {deadline_s:g} s"
            raise CommandTimeout(problem + tail_of(self._stderr_text()))
        # Not reaped yet, so the group id is still ours: nothing the command started outlives it.
        self._signal_group(signal.SIGKILL)
        exit_code = self.process.wait()
        return CommandResult(exit_code, bytes(self.stdout), self._stderr_text())

    def close(self) -> None:
        """End what is left of the group and release the pipes; safe after any outcome."""
        if self.process.returncode is None:
            self._signal_group(signal.SIGTERM)
            grace_s = STOP_GRACE_S if self.stop.is_set else TERM_GRACE_S
            self._await_exit(time.monotonic() + grace_s)
            self._signal_group(signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=KILL_GRACE_S)
        for pipe in self._pipes():
            pipe.close()

    def _pipes(self) -> list[IO[bytes]]:
        return [pipe for pipe in (self.process.stdout, self.process.stderr) if pipe is not None]

    def _drain(self) -> bool:
        """Read both pipes to their ends; False when the deadline comes first."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.stop, selectors.EVENT_READ)
            for pipe in self._pipes():
                selector.register(pipe, selectors.EVENT_READ)
            while len(selector.get_map()) > 1:
                left_s = self.deadline - time.monotonic()
                ready = [key.fileobj for key, _ in selector.select(left_s)] if left_s > 0 else []
                if not ready:
                    return False
                if self.stop in ready:
                    raise _stopped(self.name)
                self._read(ready, selector)
        return True

    def _read(self, ready: Sequence[object], selector: selectors.BaseSelector) -> None:
        """Take what pipes hold; one at its end leaves the selector."""
        for pipe in self._pipes():
            if pipe in ready:
                piece = os.read(pipe.fileno(), _READ_BYTES)
                self._append(piece, is_stdout=pipe is self.process.stdout)
                if not piece:
                    selector.unregister(pipe)

    def _append(self, piece: bytes, *, is_stdout: bool) -> None:
        if not is_stdout:
            self.stderr += piece
            del self.stderr[:-STDERR_TAIL_BYTES]
            return
        self.stdout += piece
        if len(self.stdout) > self.max_output_bytes:
            raise CommandFailed(f"{show(self.name)}: printed over {self.max_output_bytes} bytes")

    def _await_exit(self, until: float, stop: Stop | None = None) -> bool:
        """Wait for the exit of the group's leader without reaping it; False when it is late."""
        descriptor = os.pidfd_open(self.process.pid)
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(descriptor, selectors.EVENT_READ)
                if stop is not None:
                    selector.register(stop, selectors.EVENT_READ)
                ready = [
                    key.fileobj for key, _ in selector.select(max(until - time.monotonic(), 0))
                ]
                if ready == [stop]:
                    raise _stopped(self.name)
                return bool(ready)
        finally:
            os.close(descriptor)

    def _signal_group(self, number: signal.Signals) -> None:
        # A set-user-id program such as Debian's lldpcli may refuse signals of an unprivileged us.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def _stderr_text(self) -> str:
        return self.stderr.decode("utf-8", "replace")


def _stopped(name: str) -> CommandFailed:
    return CommandFailed(f"{show(name)}: ended, as the agent is")


def tail_of(stderr: str) -> str:
    """Return `: LAST LINE` of what a command complained, escaped and capped; or nothing."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return f": {show(lines[-1])}" if lines else ""
