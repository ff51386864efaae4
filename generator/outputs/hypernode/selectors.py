"""Members of a HyperNode that are not selected by exact names: patterns and labels.

Source: the CRD of Volcano 1.15. A pattern is Go's, not anchored, and is matched against the names
of nodes. An empty label selector selects nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from generator.outputs.hypernode.go_patterns import GoPattern
from generator.outputs.hypernode.go_syntax import PatternError
from topology.model.errors import show

_FORMS: Final = ("exactMatch", "regexMatch", "labelMatch")
_VALUE_OPERATORS: Final = ("In", "NotIn")
_OPERATORS: Final = (*_VALUE_OPERATORS, "Exists", "DoesNotExist")
_LABEL_KEY: Final = re.compile(
    r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z"
)

Labels = Mapping[str, str]


class LabelRequirement(NamedTuple):
    """One condition on the labels of a node."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def admits(self, labels: Labels) -> bool:
        """Return whether a node with these labels meets it."""
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
    """A member by a pattern or by labels; either is empty if `problem` says what is wrong."""

    is_child: bool
    """Whether it selects HyperNodes, which Volcano does by exact names only."""
    pattern: str = ""
    requirements: tuple[LabelRequirement, ...] = ()
    problem: str = ""
    """Why it is invalid, escaped."""

    def __str__(self) -> str:
        """Return it as a text for people, escaped."""
        if self.pattern:
            return f"pattern '{show(self.pattern)}'"
        return "labels " + ", ".join(map(_describe, self.requirements)) or "a selector"

    def select(self, nodes: Mapping[str, Labels]) -> tuple[str, ...]:
        """Return the nodes that it selects; none if it is invalid or selects HyperNodes.

        Args:
            nodes: the labels of each node.
        """
        if self.is_child or self.problem:
            return ()
        if self.pattern:
            return tuple(filter(GoPattern(self.pattern).search, nodes))
        rows = self.requirements
        return tuple(
            name
            for name, labels in nodes.items()
            if rows and all(row.admits(labels) for row in rows)
        )


def parse_selector(selector: object, *, is_child: bool) -> MemberSelector:
    """Return the selector of a member that has no exact name; never raises."""
    if not isinstance(selector, Mapping):
        return MemberSelector(is_child, problem="has no selector")
    used = [form for form in _FORMS if selector.get(form) is not None]
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
    try:
        GoPattern(pattern)
    except PatternError as error:
        problem = f"pattern '{show(pattern)}': {show(str(error))}"
        return MemberSelector(is_child, pattern, problem=problem)
    return MemberSelector(is_child, pattern)


def _parse_labels(value: Mapping[str, object], *, is_child: bool) -> MemberSelector:
    exact, rows = value.get("matchLabels") or {}, value.get("matchExpressions") or []
    if not isinstance(exact, Mapping) or not isinstance(rows, list):
        return MemberSelector(is_child, problem="labelMatch: expected a label selector")
    requirements = [LabelRequirement(str(key), "In", (str(text),)) for key, text in exact.items()]
    problems = []
    for row in rows:
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
    return LabelRequirement(str(row.get("key")), str(row.get("operator")), tuple(map(str, values)))


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


def _describe(row: LabelRequirement) -> str:
    values = f" ({', '.join(map(show, row.values))})" if row.values else ""
    return f"{show(row.key)} {row.operator}{values}"
