"""Draws which nodes a pod may use, and nodes; and filters them as kube-scheduler does.

The filters are written from the documentation of Kubernetes, on decoded objects, and share no code
with the engine.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

LABELS = ("zone", "gen", "kubernetes.io/hostname")
VALUES = ("a", "b", "3", "12", "n0", "")
KEYS = ("gpu", "hpc", "tier")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
INTEGERS = ("3", "12", "0")
Node = dict[str, Any]
"""A decoded Node."""


@st.composite
def expressions(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a requirement on a label."""
    operator = draw(st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")))
    row: dict[str, Any] = {"key": draw(st.sampled_from(LABELS)), "operator": operator}
    if operator in {"In", "NotIn"}:
        row["values"] = draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3))
    elif operator in {"Gt", "Lt"}:
        row["values"] = [draw(st.sampled_from(INTEGERS))]
    return row


field_rows = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(("In", "NotIn")),
        "values": st.lists(st.sampled_from(("n0", "n1", "n2")), min_size=1, max_size=1),
    }
)
terms = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(expressions(), min_size=1, max_size=3),
        "matchFields": st.lists(field_rows, min_size=1, max_size=2),
    },
).filter(bool)
"""Terms of a NodeSelector."""


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
pod_specs = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": st.dictionaries(
            st.sampled_from(LABELS), st.sampled_from(VALUES), max_size=2
        ),
        "affinity": st.builds(
            lambda rows: {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": rows}
                }
            },
            st.lists(terms, min_size=1, max_size=3),
        ),
        "tolerations": st.lists(tolerations(), max_size=3),
    },
)
"""The part of a pod's spec that says which nodes it may use."""


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    """Draw three Nodes with labels and taints."""
    taints = st.fixed_dictionaries(
        {"key": st.sampled_from(KEYS), "effect": st.sampled_from(EFFECTS)},
        optional={"value": st.sampled_from(VALUES)},
    )
    some_taints = st.lists(
        taints, max_size=2, unique_by=lambda taint: (taint["key"], taint["effect"])
    )
    labels = st.dictionaries(st.sampled_from(LABELS[:2]), st.sampled_from(VALUES), max_size=2)
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": draw(labels) | {LABELS[2]: name}},
            "spec": {"taints": draw(some_taints)},
            "status": {
                "allocatable": {"cpu": "8", "pods": "10"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for name in ("n0", "n1", "n2")
    ]


def wire_terms(pod: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Return the node affinity of a pod's spec as that of a request."""
    required = pod.get("affinity", {}).get("nodeAffinity", {})
    rows = required.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    return [
        [
            *term.get("matchExpressions", []),
            *(
                {"field": row["key"]} | {name: row[name] for name in ("operator", "values")}
                for row in term.get("matchFields", [])
            ),
        ]
        for term in rows.get("nodeSelectorTerms", [])
    ]


def passes_filters(pod: dict[str, Any], node: Node) -> bool:
    """Return whether the filters NodeAffinity and TaintToleration let a pod onto a node."""
    labels = node["metadata"]["labels"]
    if any(labels.get(key) != value for key, value in pod.get("nodeSelector", {}).items()):
        return False
    terms_of_pod = wire_terms(pod)
    if terms_of_pod and not any(all(_holds(row, node) for row in term) for term in terms_of_pod):
        return False
    return all(
        taint["effect"] == "PreferNoSchedule"
        or any(_tolerates(row, taint) for row in pod.get("tolerations", []))
        for taint in node["spec"].get("taints", [])
    )


def _holds(row: dict[str, Any], node: Node) -> bool:
    labels = node["metadata"]["labels"]
    found = node["metadata"]["name"] if "field" in row else labels.get(row.get("key"))
    match row["operator"]:
        case "In":
            return found is not None and found in row["values"]
        case "NotIn":
            return found is None or found not in row["values"]
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
    number = _integer(found)
    if number is None:
        return False
    bound = int(row["values"][0])
    return number > bound if row["operator"] == "Gt" else number < bound


def _tolerates(row: dict[str, Any], taint: dict[str, str]) -> bool:
    if row.get("effect", "") not in {"", taint["effect"]}:
        return False
    if row.get("key", "") not in {"", taint["key"]}:
        return False
    value = taint.get("value", "")
    if row["operator"] == "Exists":
        return True
    if row["operator"] == "Equal":
        return bool(value == row.get("value", ""))
    number = _integer(value)
    if number is None:
        return False
    bound = int(row["value"])
    return number > bound if row["operator"] == "Gt" else number < bound


def _integer(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None
