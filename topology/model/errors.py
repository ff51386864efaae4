"""The errors of the project, all in one tree; each `str()` is one line that an operator can read.

    TopologyError
    ├─ ConfigError              a file, flag or variable is wrong
    ├─ ParseError               one bad line or field of an input; usually returned, not raised
    ├─ ReportError              a report's version or content is refused
    ├─ CollectError             one collector failed
    │  ├─ CommandMissing
    │  ├─ CommandTimeout
    │  └─ CommandFailed
    ├─ SwitchError              a switch could not be walked
    │  ├─ SwitchSilent
    │  └─ SwitchRefused
    ├─ StoreError               a folder or file of the store cannot be read or written
    ├─ KubeError                the Kubernetes API refused a request, or did not answer
    │  ├─ KubeNotFound          404
    │  ├─ KubeConflict          409: changed since it was read, or a field belongs to another
    │  ├─ KubeForbidden         401, 403
    │  ├─ KubeExpired           410: too old a version or page; list again
    │  ├─ KubeUnavailable       no answer, 408, 429 or 5xx: the same request may work later
    │  └─ KubeFenced            not even asked, because another replica may lead by now
    └─ PlacementRequestError    a placement request that makes no sense

Expected outcomes (no data, one-sided link, infeasible gang) are values, not errors.
`InvariantError` is a defect of ours and never caught.
"""

from __future__ import annotations

from typing import Any

EXCERPT_CHARS = 120


def show(text: str, limit: int = EXCERPT_CHARS) -> str:
    """Return foreign text safe to print: escaped, no control or bidi characters, and capped."""
    if len(text) <= limit and text.isprintable():
        return text
    cut = text[:limit]
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut)
    return shown + ("…" if len(text) > limit else "")


class TopologyError(Exception):
    """Anything raised on purpose."""


class ConfigError(TopologyError):
    """A file, flag or environment variable is wrong."""


class ParseError(TopologyError):
    """One part of an input could not be read; the rest still counts."""

    def __init__(
        self, problem: str, *, source: str = "", line: int | None = None, excerpt: str = ""
    ) -> None:
        """Keep the fields.

        Args:
            problem: what is wrong and what was expected, in a few words.
            source: file name or the like.
            line: 1-based line, where lines mean something.
            excerpt: the offending text; trimmed and escaped here.
        """
        super().__init__(problem, source, line, excerpt)
        self.problem = problem
        self.source = source
        self.line = line
        self.excerpt = show(excerpt)

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling although the fields are keywords."""
        return _parse_error, (self.problem, self.source, self.line, self.excerpt)

    def __str__(self) -> str:
        """Return `source:line: problem: 'excerpt'`."""
        place = ":".join(str(part) for part in (self.source, self.line) if part not in ("", None))
        quoted = f": '{self.excerpt}'" if self.excerpt else ""
        return f"{place}: {self.problem}{quoted}" if place else f"{self.problem}{quoted}"


def _parse_error(problem: str, source: str, line: int | None, excerpt: str) -> ParseError:
    return ParseError(problem, source=source, line=line, excerpt=excerpt)


class ReportError(TopologyError):
    """A report that is refused: its version, its schema or its content."""


class CollectError(TopologyError):
    """A collector failed on this node."""


class CommandMissing(CollectError):  # noqa: N818 - reads as what happened
    """The program is not installed, or may not be started."""


class CommandTimeout(CollectError):  # noqa: N818 - reads as what happened
    """The program did not end before its deadline."""


class CommandFailed(CollectError):  # noqa: N818 - reads as what happened
    """The program ended with a failure, or printed more than its cap."""


class SwitchError(TopologyError):
    """A switch could not be walked, or not to the end."""


class SwitchSilent(SwitchError):  # noqa: N818 - reads as what happened
    """It did not answer: it is down, unreachable, or does not know the community."""


class SwitchRefused(SwitchError):  # noqa: N818 - reads as what happened
    """It answered, and would not tell: a wrong user or key, or a view without the tables."""


class StoreError(TopologyError):
    """A folder or file of the store cannot be read or written."""


class KubeError(TopologyError):
    """The Kubernetes API refused a request, or did not answer; the subclasses say what helps."""

    def __init__(
        self, problem: str, *, status: int = 0, reason: str = "", retry_after_s: float | None = None
    ) -> None:
        """Keep the fields.

        Args:
            problem: one line: what was asked, and what the answer said; foreign text escaped.
            status: of HTTP; 0 where there was no answer.
            reason: the server's word, such as `AlreadyExists`.
            retry_after_s: how long the server asks to wait.
        """
        super().__init__(problem)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling although the fields are keywords."""
        fields = {"status": self.status, "reason": self.reason, "retry_after_s": self.retry_after_s}
        return _kube_error, (type(self), self.args[0], fields)


def _kube_error(kind: type[KubeError], problem: str, fields: dict[str, Any]) -> KubeError:
    return kind(problem, **fields)


class KubeNotFound(KubeError):  # noqa: N818 - reads as what happened
    """There is no such object, or no such kind."""


class KubeConflict(KubeError):  # noqa: N818 - reads as what happened
    """The object changed since it was read, exists already, or a field belongs to another."""


class KubeForbidden(KubeError):  # noqa: N818 - reads as what happened
    """The server does not know us, or does not let us."""


class KubeExpired(KubeError):  # noqa: N818 - reads as what happened
    """The version to go on from, or the page of a list, is too old: list again."""


class KubeUnavailable(KubeError):  # noqa: N818 - reads as what happened
    """No answer, or none now: the same request may work later."""


class KubeFenced(KubeError):  # noqa: N818 - reads as what happened
    """A write that was not even asked for, because another replica may lead by now."""


class PlacementRequestError(TopologyError):
    """A placement request that makes no sense; `field` is its path, such as `groups[0].count`."""

    def __init__(self, field: str, problem: str) -> None:
        """Keep the path of the field and what is wrong with it."""
        super().__init__(field, problem)
        self.field = field
        self.problem = problem

    def __str__(self) -> str:
        """Return `field: problem`."""
        return f"{self.field}: {self.problem}"


class InvariantError(AssertionError):
    """Something that our own code guarantees does not hold."""
