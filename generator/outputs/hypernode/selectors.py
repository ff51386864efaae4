"""Members of a HyperNode that are not selected by exact names: patterns and labels. Pure.

Source: the CRD of Volcano 1.15. A pattern is Go's, not anchored, and is matched against the names
of nodes. An empty label selector selects nothing.

RE2 has the syntax of Go's regexp, and takes time in proportion to the text. Python's `re` reads
other syntax (look-ahead, back references) and can take exponential time on a hostile pattern.
Source: https://github.com/google/re2/wiki/Syntax, and the parser of Go's regexp/syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from topology.model.errors import show

if TYPE_CHECKING:
    import re2

MAX_PATTERN: Final = 4096
_MAX_PROGRAM_BYTES: Final = 1 << 20
"""About 10,000 instructions. Compiling takes time and memory in proportion."""
_MAX_MATCH_BYTES: Final = 8 << 20
"""With less memory, RE2 remembers no states, and some patterns take a hundred times as long."""
_TOO_LARGE: Final = "pattern too large"
_ESCAPE: Final = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.", re.DOTALL)
_ANY_BYTE: Final = r"\C"
"""RE2 reads it, and Go refuses it."""


class PatternError(ValueError):
    """The pattern cannot be used; the text says why."""


class GoPattern:
    """A compiled pattern."""

    def __init__(self, pattern: str) -> None:
        """Compile a pattern.

        Raises:
            PatternError: Go refuses it, or it is larger than any list of names needs.
        """
        if len(pattern) > MAX_PATTERN:
            raise PatternError(f"is not matched: it is longer than {MAX_PATTERN} characters")
        if _ANY_BYTE in _ESCAPE.findall(pattern):
            raise PatternError(f"invalid escape sequence: {_ANY_BYTE}")
        _compile(pattern, _MAX_PROGRAM_BYTES)
        self._compiled = _compile(pattern, _MAX_MATCH_BYTES)

    def search(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in the text, as Volcano applies it."""
        return self._compiled.search(_encode(text)) is not None

    def fullmatch(self, text: str) -> bool:
        """Return whether the pattern matches the whole text."""
        return self._compiled.fullmatch(_encode(text)) is not None


def _compile(pattern: str, max_bytes: int) -> re2._Regexp:
    import re2  # noqa: PLC0415 - 10 ms, for the few commands that match patterns

    options = re2.Options()
    options.max_mem = max_bytes
    options.log_errors = False
    options.never_capture = True  # else a match lists a thousand empty groups
    try:
        return re2.compile(pattern.encode(), options)
    except UnicodeEncodeError as error:
        raise PatternError("invalid UTF-8") from error
    except re2.error as error:
        raise PatternError(_describe_refusal(error)) from error
    finally:
        re2.purge()  # a pattern is matched once, and RE2 would remember 128


def _describe_refusal(error: Exception) -> str:
    """Return the reason of RE2, which is given as bytes."""
    reason = error.args[0]
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    if text.startswith(_TOO_LARGE):  # Go allows more
        return f"is not matched: its program is larger than {_MAX_PROGRAM_BYTES} bytes"
    return text


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


_FORMS: Final = ("exactMatch", "regexMatch", "labelMatch")
_VALUE_OPERATORS: Final = ("In", "NotIn")
_OPERATORS: Final = (*_VALUE_OPERATORS, "Exists", "DoesNotExist")
_LABEL_TEXT: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_KEY: Final = re.compile(rf"([a-z0-9.-]{{1,253}}/)?{_LABEL_TEXT}\Z")
_LABEL_VALUE: Final = re.compile(rf"({_LABEL_TEXT})?\Z")
_BRACKETS: Final = ("()", "[]", "{}")

Labels = Mapping[str, str]


class LabelRequirement(NamedTuple):
    """One condition on the labels of a node."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def admits(self, labels: Labels) -> bool:
        """Return whether a node with these labels meets the condition."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


class MemberSelector(NamedTuple):
    """A member by a pattern or by labels; either is empty if `problem` says what is wrong.

    A pattern is compiled when it is matched or checked, never when it is read: a round reads the
    patterns of others, and matches none.
    """

    is_child: bool
    """Whether the selector selects HyperNodes, which Volcano does by exact names only."""
    pattern: str = ""
    requirements: tuple[LabelRequirement, ...] = ()
    problem: str = ""
    """Why the form of the selector is invalid, escaped."""

    def __str__(self) -> str:
        """Return the selector as escaped text for people."""
        if self.pattern:
            return f"pattern '{show(self.pattern)}'"
        return "labels " + ", ".join(map(_describe, self.requirements)) or "a selector"

    def select(self, nodes: Mapping[str, Labels] | None) -> Selection:
        """Return the nodes that it selects; none if it is invalid or selects HyperNodes.

        Args:
            nodes: the labels of each node; None: unknown, and only the selector is checked.
        """
        if self.problem:
            return Selection(problem=self.problem)
        if self.pattern:
            return self._match_names(() if self.is_child or nodes is None else nodes)
        if self.is_child or nodes is None:
            return Selection()
        rows = self.requirements
        return Selection(
            tuple(
                name
                for name, labels in nodes.items()
                if rows and all(row.admits(labels) for row in rows)
            )
        )

    def _match_names(self, names: Iterable[str]) -> Selection:
        try:
            pattern = GoPattern(self.pattern)
        except PatternError as error:
            return Selection(problem=f"pattern '{show(self.pattern)}': {show(str(error))}")
        selected = tuple(filter(pattern.search, names))
        return Selection(selected, tuple(name for name in selected if not pattern.fullmatch(name)))


class Selection(NamedTuple):
    """What a selector selects."""

    nodes: tuple[str, ...] = ()
    partly: tuple[str, ...] = ()
    """The selected names of which a pattern matches a part only."""
    problem: str = ""
    """Why the selector is invalid, escaped."""


def list_forms(selector: object) -> list[str]:
    """Return the forms of a selector that are set; a valid one has one."""
    if not isinstance(selector, Mapping):
        return []
    return [form for form in _FORMS if selector.get(form) is not None]


def parse_selector(selector: object, *, is_child: bool) -> MemberSelector:
    """Return the selector of a member that has no exact name; never raises."""
    if not isinstance(selector, Mapping):
        return MemberSelector(is_child, problem="has no selector")
    used = list_forms(selector)
    if len(used) != 1:
        what = "has several of" if used else "has none of"
        return MemberSelector(is_child, problem=f"{what} {', '.join(_FORMS)}")
    value = selector[used[0]]
    if not isinstance(value, Mapping):
        return MemberSelector(is_child, problem=f"{used[0]}: expected an object")
    if used[0] == "regexMatch":
        return _parse_pattern(value.get("pattern"), is_child=is_child)
    return _parse_labels(value, is_child=is_child)


def _parse_pattern(pattern: object, *, is_child: bool) -> MemberSelector:
    if not isinstance(pattern, str) or not pattern:
        return MemberSelector(is_child, problem="regexMatch.pattern: expected text")
    return MemberSelector(is_child, pattern)


def _parse_labels(value: Mapping[str, object], *, is_child: bool) -> MemberSelector:
    exact, rows = value.get("matchLabels") or {}, value.get("matchExpressions") or []
    if not isinstance(exact, Mapping) or not isinstance(rows, list):
        return MemberSelector(is_child, problem="labelMatch: expected a label selector")
    each = [{"key": key, "operator": "In", "values": [text]} for key, text in exact.items()]
    requirements, problems = [], []
    for row in (*each, *rows):
        parsed = _parse_requirement(row)
        if isinstance(parsed, str):
            problems.append(parsed)
        else:
            requirements.append(parsed)
    problems += _find_requirement_problems(requirements)
    if not requirements and not problems:
        problems.append("labelMatch: is empty, and selects nothing")
    problem = problems[0] if problems else ""
    return MemberSelector(is_child, requirements=tuple(requirements), problem=problem)


def _parse_requirement(row: object) -> LabelRequirement | str:
    if not isinstance(row, Mapping):
        return "labelMatch.matchExpressions: expected objects"
    values = row.get("values") or []
    if not isinstance(values, list):
        return "labelMatch.matchExpressions.values: expected a list"
    key = str(row.get("key"))
    for value in values:
        if not isinstance(value, str):
            return (
                f"labelMatch: key '{show(key)}': the value {show(str(value))} is no text: quote it"
            )
    return LabelRequirement(key, str(row.get("operator")), tuple(values))


def _find_requirement_problems(requirements: list[LabelRequirement]) -> Iterator[str]:
    for row in requirements:
        where = f"labelMatch: key '{show(row.key)}'"
        if not _LABEL_KEY.match(row.key):
            yield f"{where} is no label key"
        elif row.operator not in _OPERATORS:
            yield f"{where}: unknown operator '{show(row.operator)}'"
        elif (row.operator in _VALUE_OPERATORS) != bool(row.values):
            expected = "needs values" if row.operator in _VALUE_OPERATORS else "takes no values"
            yield f"{where}: {row.operator} {expected}"
        for value in row.values:
            if not _LABEL_VALUE.match(value):
                yield f"{where}: '{show(value)}' is no value of a label"


def find_refused_bracket(pattern: str) -> str:
    """Return the kind of brackets for which Volcano's admission policy refuses a pattern.

    The policy counts brackets also where they are escaped or in a set of characters. Empty: it
    takes the pattern.
    """
    unequal = (
        pair
        for pair in _BRACKETS
        if pair[0] in pattern and pattern.count(pair[0]) != pattern.count(pair[1])
    )
    return next(unequal, "")


def _describe(row: LabelRequirement) -> str:
    values = f" ({', '.join(map(show, row.values))})" if row.values else ""
    return f"{show(row.key)} {row.operator}{values}"
