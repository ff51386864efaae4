"""Fakes of the agent's edges: a runner that answers from a table, and a clock for tests."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from agent.node.command import CommandLimits, CommandResult, Runner
from topology.model.errors import CommandMissing, TopologyError

Answer = CommandResult | TopologyError


@dataclass
class FakeRunner(Runner):
    """Answers commands by the words they contain; a program without an answer is not installed."""

    answers: Mapping[str, Answer] = field(default_factory=dict)
    """By a blank-separated run of words of the command line, such as `show chassis`."""
    asked: list[tuple[str, ...]] = field(default_factory=list)
    limits: list[CommandLimits] = field(default_factory=list)
    installed: Collection[str] = ("lldpcli", "ibnetdiscover")

    def run(self, argv: Sequence[str], limits: CommandLimits) -> CommandResult:
        """Return or raise the answer of the first key that the command line contains."""
        self.asked.append(tuple(argv))
        self.limits.append(limits)
        answer = next((self.answers[key] for key in self.answers if key in " ".join(argv)), None)
        if answer is None:
            raise CommandMissing(f"{argv[0]}: not found")
        if isinstance(answer, TopologyError):
            raise answer
        return answer

    def find(self, program: str) -> str | None:
        """Return a path of an installed program while there is any answer."""
        is_found = self.answers and program.rpartition("/")[2] in self.installed
        return f"/usr/bin/{program}" if is_found else None


@dataclass
class FakeClock:
    """A clock that moves by a second with each reading."""

    moment: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    seconds: float = 0.0

    def now(self) -> datetime:
        """Return the time of day."""
        self.moment += timedelta(seconds=1)
        return self.moment

    def monotonic(self) -> float:
        """Return seconds since the start."""
        self.seconds += 1
        return self.seconds


def printed(stdout: str | bytes, *, stderr: str = "", exit_code: int = 0) -> CommandResult:
    """Return the result of a command that printed this."""
    raw = stdout.encode() if isinstance(stdout, str) else stdout
    return CommandResult(exit_code, raw, stderr)
