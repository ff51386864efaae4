"""Which nodes a pod may use: requirements on labels and names, and tolerations of taints. Pure.

Both mean what they mean to kube-scheduler. Source: Kubernetes, component-helpers
scheduling/corev1/nodeaffinity, apimachinery pkg/labels, and api/core/v1/toleration.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

NAME_FIELD: Final = "metadata.name"
"""The only field of a node that requirements can name."""
_MAX_INTEGER: Final = 2**63 - 1
_INTEGER = re.compile(r"[+-]?[0-9]{1,32}\Z", re.ASCII)


class NodeOperator(StrEnum):
    """How a label, or the name, of a node is compared with values."""

    IN = "In"
    NOT_IN = "NotIn"
    """A node without the label passes."""
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    """The label is an integer above the only value."""
    LT = "Lt"


class NodeRequirement(NamedTuple):
    """A requirement on a label of a node, or on its name."""

    key: str
    """The label; `metadata.name` if the name of the node is meant."""
    operator: NodeOperator
    values: tuple[str, ...] = ()
    """Sorted."""
    is_field: bool = False
    """Whether `key` is a field of the node, not a label."""

    def accepted_values(self, known: Mapping[str, int]) -> list[bool]:
        """Return whether each known value passes; the last entry is for a node without the label.

        Args:
            known: the values of the label on any node, in the order of their numbers.
        """
        if self.operator is NodeOperator.EXISTS:
            return [*[True] * len(known), False]
        if self.operator is NodeOperator.DOES_NOT_EXIST:
            return [*[False] * len(known), True]
        if self.operator in (NodeOperator.GT, NodeOperator.LT):
            compared = [compare_integers(value, self.values[0]) for value in known]
            wanted_sign = 1 if self.operator is NodeOperator.GT else -1
            return [*[sign == wanted_sign for sign in compared], False]
        named, is_in = frozenset(self.values), self.operator is NodeOperator.IN
        return [*[(value in named) == is_in for value in known], not is_in]


NodeTerms = tuple[tuple[NodeRequirement, ...], ...]
"""A node must meet all requirements of one of the terms; empty: every node does."""


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    """Excludes no pod."""
    NO_EXECUTE = "NoExecute"


class Taint(NamedTuple):
    """A taint of a node."""

    key: str
    value: str
    effect: str
    """As the node says; every effect but PreferNoSchedule excludes pods."""


def parse_taint(text: str) -> Taint:
    """Return a taint of the form `key=value:Effect`."""
    pair, _, effect = text.rpartition(":") if ":" in text else (text, "", "")
    key, _, value = pair.partition("=")
    return Taint(key, value, effect)


class TolerationOperator(StrEnum):
    """How the value of a taint is compared."""

    EXISTS = "Exists"
    EQUAL = "Equal"
    GT = "Gt"
    """The taint is an integer above the value. Since Kubernetes 1.35."""
    LT = "Lt"


class Toleration(NamedTuple):
    """Taints that a pod tolerates."""

    key: str
    """Empty: every key."""
    operator: TolerationOperator
    value: str = ""
    effect: str = ""
    """Empty: every effect."""

    @property
    def text(self) -> str | None:
        """The short form `key` or `key=value`; None if the toleration cannot be written so."""
        if self.effect or not self.key or "=" in self.key:
            return None
        if self.operator is TolerationOperator.EXISTS:
            return self.key
        return f"{self.key}={self.value}" if self.operator is TolerationOperator.EQUAL else None

    def tolerates(self, taint: Taint) -> bool:
        """Return whether pods with this toleration may use a node with the taint."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        if self.operator is TolerationOperator.EXISTS:
            return True
        if self.operator is TolerationOperator.EQUAL:
            return self.value == taint.value
        wanted_sign = 1 if self.operator is TolerationOperator.GT else -1
        return compare_integers(taint.value, self.value) == wanted_sign


def compare_integers(left: str, right: str) -> int | None:
    """Return the sign of left minus right; None if one is no integer of 64 bits."""
    if not (is_integer(left) and is_integer(right)):
        return None
    return (int(left) > int(right)) - (int(left) < int(right))


def is_integer(text: str) -> bool:
    """Return whether a text is an integer of 64 bits."""
    return bool(_INTEGER.match(text)) and -_MAX_INTEGER - 1 <= int(text) <= _MAX_INTEGER
