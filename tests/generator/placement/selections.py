"""Draws requirements on nodes, taints and tolerations, as a request and as Kubernetes write them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

LABELS = ("zone", "gen", "kubernetes.io/hostname")
VALUES = ("a", "b", "3", "12", "-4", "n0", "")
KEYS = ("gpu", "hpc", "node.kubernetes.io/not-ready")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
INTEGERS = ("3", "12", "-4", "0")


@st.composite
def requirements(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a requirement on a label."""
    operator = draw(st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")))
    row: dict[str, Any] = {"key": draw(st.sampled_from(LABELS)), "operator": operator}
    if operator in {"In", "NotIn"}:
        row["values"] = draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3))
    elif operator in {"Gt", "Lt"}:
        row["values"] = [draw(st.sampled_from(INTEGERS))]
    return row


name_requirements = st.fixed_dictionaries(
    {
        "field": st.just("metadata.name"),
        "operator": st.sampled_from(("In", "NotIn")),
        "values": st.lists(st.sampled_from(("n0", "n1", "n2")), min_size=1, max_size=1),
    }
)
affinities = st.lists(
    st.lists(requirements() | name_requirements, min_size=1, max_size=3), max_size=3
)


@st.composite
def tolerations(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a toleration in the form of an object."""
    operator = draw(st.sampled_from(("Exists", "Equal", "Gt", "Lt")))
    row: dict[str, Any] = {"operator": operator}
    if operator != "Exists" or draw(st.booleans()):
        row["key"] = draw(st.sampled_from(KEYS))
    if operator == "Equal":
        row["value"] = draw(st.sampled_from(VALUES))
    elif operator != "Exists":
        row["value"] = draw(st.sampled_from(INTEGERS))
    return row | draw(st.fixed_dictionaries({}, optional={"effect": st.sampled_from(EFFECTS)}))


texts = st.sampled_from(KEYS) | st.builds(
    "{}={}".format, st.sampled_from(KEYS), st.sampled_from(VALUES)
)
"""Tolerations in the form of text."""
taints = st.builds(
    "{}={}:{}".format, st.sampled_from(KEYS), st.sampled_from(VALUES), st.sampled_from(EFFECTS)
)
