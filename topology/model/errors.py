"""Every error of the project, in one tree. Each `str()` is one line that an operator can read.

    TopologyError
    ├─ ConfigError              a file, flag or variable is wrong
    ├─ ParseError               one bad line or field of an input; usually returned, not raised
    │  └─ CutInput              the end of an input is missing
    ├─ ReportError              a report's version or content is refused
    ├─ CollectError             one collector failed
    │  ├─ CommandMissing
    │  ├─ CommandTimeout
    │  └─ CommandFailed
    ├─ SwitchError              a switch could not be walked
    │  ├─ SwitchSilent
    │  └─ SwitchRefused
    ├─ StoreError               a folder or file of the store cannot be read or written
    │  └─ WriteError            a file cannot be written
    ├─ KubeError                the Kubernetes API refused a request, or did not answer
    │  ├─ KubeNotFound          404
    │  ├─ KubeConflict          409: changed since it was read, or another manager owns a field
    │  ├─ KubeForbidden         401, 403
    │  ├─ KubeExpired           410: the resource version or list page is too old; list again
    │  ├─ KubeUnavailable       no answer, 408, 429 or 5xx: the same request may work later
    │  └─ KubeFenced            write not sent: another replica may lead by now
    └─ PlacementRequestError    a placement request is malformed

Expected outcomes (no data, one-sided link, infeasible gang) are values, not errors.
`InvariantError` marks a defect of this project and is never caught.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

EXCERPT_CHARS = 120


def show(text: str, limit: int = EXCERPT_CHARS) -> str:
    """Return foreign text that is safe to print: no control or bidi characters, and capped."""
    if len(text) <= limit and text.isprintable():
        return text
    cut = text[:limit]
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut)
    return shown + ("…" if len(text) > limit else "")


def list_some(texts: Iterable[str], limit: int) -> str:
    """Return the first texts on one line, and the number of the others: `a, b and 3 more`."""
    every = list(texts)
    more = len(every) - limit
    return ", ".join(every[:limit]) + (f" and {more} more" if more > 0 else "")


class TopologyError(Exception):
    """Base class of every error that the project raises on purpose.

    Its texts are printable, whatever they quote: control and bidi characters are escaped.
    """

    def __init__(self, *args: object) -> None:
        """Escape and store the arguments."""
        super().__init__(*(show(arg, len(arg)) if isinstance(arg, str) else arg for arg in args))


class ConfigError(TopologyError):
    """A file, flag or environment variable is wrong."""


class ParseError(TopologyError):
    """One part of an input could not be read; the rest still counts."""

    def __init__(
        self, problem: str, *, source: str = "", line: int | None = None, excerpt: str = ""
    ) -> None:
        """Store the fields.

        Args:
            problem: the fault, and what was expected, in a few words.
            source: the origin of the input, such as a file name.
            line: 1-based line, or None if the input has no lines.
            excerpt: the offending text; trimmed here.
        """
        super().__init__(problem, source, line, show(excerpt))
        self.problem, self.source, self.line, self.excerpt = self.args

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling although the fields are keyword arguments."""
        return _parse_error, (self.problem, self.source, self.line, self.excerpt)

    def __str__(self) -> str:
        """Return `source:line: problem: 'excerpt'`."""
        place = ":".join(str(part) for part in (self.source, self.line) if part not in ("", None))
        quoted = f": '{self.excerpt}'" if self.excerpt else ""
        return f"{place}: {self.problem}{quoted}" if place else f"{self.problem}{quoted}"


class CutInput(ParseError):  # noqa: N818 - reads as what happened
    """The end of an input is missing: what is absent from it may exist."""

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling although the fields are keyword arguments."""
        return _cut_input, (self.problem, self.source, self.line, self.excerpt)


def _cut_input(problem: str, source: str, line: int | None, excerpt: str) -> CutInput:
    return CutInput(problem, source=source, line=line, excerpt=excerpt)


def _parse_error(problem: str, source: str, line: int | None, excerpt: str) -> ParseError:
    return ParseError(problem, source=source, line=line, excerpt=excerpt)


class ReportError(TopologyError):
    """A report is refused for its version, its schema or its content."""


class CollectError(TopologyError):
    """A collector failed on this node."""


class CommandMissing(CollectError):  # noqa: N818 - reads as what happened
    """The program is not installed, or this user is not allowed to run it."""


class CommandTimeout(CollectError):  # noqa: N818 - reads as what happened
    """The program did not end before its deadline."""


class CommandFailed(CollectError):  # noqa: N818 - reads as what happened
    """The program exited with an error, or printed more than its limit."""


class SwitchError(TopologyError):
    """The SNMP walk of a switch failed or did not finish."""


class SwitchSilent(SwitchError):  # noqa: N818 - reads as what happened
    """The switch did not answer: it is down, unreachable, or does not know the community."""


class SwitchRefused(SwitchError):  # noqa: N818 - reads as what happened
    """The switch answered with a refusal: wrong user or key, or a view without the tables."""


class StoreError(TopologyError):
    """A folder or file of the store cannot be read or written."""


class WriteError(StoreError):
    """A file cannot be written: the disk is full, the folder is read-only, or the like."""


class KubeError(TopologyError):
    """The Kubernetes API refused a request or did not answer; each subclass has one remedy."""

    def __init__(
        self, problem: str, *, status: int = 0, reason: str = "", retry_after_s: float | None = None
    ) -> None:
        """Store the fields.

        Args:
            problem: one line with the request and the answer; foreign text escaped.
            status: the HTTP status; 0 if there was no answer.
            reason: the `reason` of the server's answer, such as `AlreadyExists`.
            retry_after_s: how long the server asks the client to wait.
        """
        super().__init__(problem)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling although the fields are keyword arguments."""
        fields = {"status": self.status, "reason": self.reason, "retry_after_s": self.retry_after_s}
        return _kube_error, (type(self), self.args[0], fields)


def _kube_error(kind: type[KubeError], problem: str, fields: dict[str, Any]) -> KubeError:
    return kind(problem, **fields)


class KubeNotFound(KubeError):  # noqa: N818 - reads as what happened
    """The object or its kind does not exist."""


class KubeConflict(KubeError):  # noqa: N818 - reads as what happened
    """The object changed since it was read, exists already, or another manager owns a field."""


class KubeInUse(KubeError):  # noqa: N818 - reads as what happened
    """The object cannot be replaced while another object refers to it."""


class KubeForbidden(KubeError):  # noqa: N818 - reads as what happened
    """The server does not know us, or does not let us."""


class KubeExpired(KubeError):  # noqa: N818 - reads as what happened
    """The resource version of a watch, or the page of a list, is too old: list again."""


class KubeUnavailable(KubeError):  # noqa: N818 - reads as what happened
    """The server did not answer or cannot answer now: the same request may work later."""


class KubeFenced(KubeError):  # noqa: N818 - reads as what happened
    """A write was not sent, because another replica may lead by now."""


class PlacementRequestError(TopologyError):
    """A placement request is malformed; `field` is a path such as `groups[0].count`."""

    def __init__(self, field: str, problem: str) -> None:
        """Store the path of the field and what is wrong with it."""
        super().__init__(field, problem)
        self.field, self.problem = self.args

    def __str__(self) -> str:
        """Return `field: problem`."""
        return f"{self.field}: {self.problem}"


class InvariantError(AssertionError):
    """A guarantee of the project's own code does not hold."""
