"""Grove's ClusterTopologyBinding, with the fields and the limits of August 2026.

Grove's own definition is in no Go module that can be fetched, so this one stands in for it.
"""

from typing import Any, Final

_TEXT: Final = {"type": "string", "minLength": 1}
_KEY: Final = (
    r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
)


def _object(*required: str, **properties: object) -> dict[str, Any]:
    return {"type": "object", "required": [*required], "properties": properties}


_LEVEL: Final = _object(
    "domain",
    "key",
    domain={**_TEXT, "maxLength": 63, "pattern": "^[a-z][a-z0-9-]*$"},
    key={**_TEXT, "maxLength": 63, "pattern": _KEY},
)
_BINDING: Final = _object(
    "schedulerName", "topologyReference", schedulerName=_TEXT, topologyReference=_TEXT
)
_SPEC: Final = _object(
    "levels",
    levels={"type": "array", "minItems": 1, "items": _LEVEL},
    schedulerTopologyBindings={"type": "array", "items": _BINDING},
)
GROVE_KIND: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "clustertopologybindings.grove.io"},
    "spec": {
        "group": "grove.io",
        "scope": "Cluster",
        "names": {
            "kind": "ClusterTopologyBinding",
            "listKind": "ClusterTopologyBindingList",
            "plural": "clustertopologybindings",
            "singular": "clustertopologybinding",
        },
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": _object("spec", spec=_SPEC)},
            }
        ],
    },
}
