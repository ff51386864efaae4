"""One good object of each of our kinds, and changes to it."""

import copy
import secrets
from collections.abc import Mapping
from typing import Any, Final

from generator.kube.resources import FABRICS, RECORDS, REPORTS, RESERVATIONS, Resource
from generator.objects.reservation import parse_reservation
from generator.objects.tree_record import (
    EMPTY_TREE,
    RecentChanges,
    TreeRecord,
    parse_tree_record,
    render_tree_record,
)
from tests.generator.folders import parse_fabric_document
from topology.reports.neighbor_report import parse_report

NOW: Final = "2026-11-05T10:00:00Z"
MISSING: Final = object()
Change = Mapping[str, object]
"""Dotted paths to new values; MISSING removes a field."""

REPORT: Final[Mapping[str, Any]] = {
    "spec": {
        "device": {
            "kind": "host",
            "name": "node-1",
            "ids": [{"type": "node-guid", "value": "0c42a10300000001"}],
        },
        "ports": [
            {
                "name": "mlx5_0/1",
                "medium": "infiniband",
                "state": "up",
                "rateBps": 400_000_000_000,
                "subnet": "fe80000000000000",
                "neighbors": [{"source": "lldp", "name": "leaf-1", "ttlSeconds": 120}],
            }
        ],
    },
    "status": {
        "observedAt": NOW,
        "collectors": [{"name": "lldpd", "outcome": "ok"}, {"name": "net", "outcome": "failed"}],
    },
}
FABRIC: Final[Mapping[str, Any]] = {
    "spec": {
        "planes": [
            {"name": "storage", "any": [{"switches": ["stor-*"]}]},
            {"name": "compute", "any": [{"minRateGbps": 100, "maxRateGbps": 400.5}]},
        ],
        "tierNames": ["leaf", "spine"],
        "outputs": [{"type": "hypernode", "plane": "compute"}],
        "changeBudget": {"nodesPercent": 10, "domainsPercent": 25, "releaseAfterSeconds": 3600},
        "paused": False,
    },
    "status": {
        "observedGeneration": 1,
        "generation": 7,
        "sweepers": [
            {
                "subnet": "fe80000000000000",
                "node": "node-1",
                "device": "mlx5_0",
                "port": 1,
                "role": "elected",
            }
        ],
        "sweeps": [{"subnet": "fe80000000000000", "node": "node-1"}],
        "tiers": [{"tier": 1, "name": "leaf", "domains": 4, "nodes": 128}],
        "unplaced": 1,
        "findings": [{"kind": "swapped-cable", "severity": "error", "count": 1}],
        "held": {"hash": "0123456789abcdef", "since": NOW, "deletes": 3, "movedNodes": 40},
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "observedGeneration": 1,
                "lastTransitionTime": NOW,
                "reason": "TreeKnown",
                "message": "",
            }
        ],
    },
}
RESERVATION: Final[Mapping[str, Any]] = {
    "spec": {
        "requestId": "3b241101-e2bb-4255-8caf-4136c566a962",
        "requestHash": 32 * "5a",
        "holder": "system:serviceaccount:training:launcher",
        "gang": {"namespace": "training", "name": "llm-7b"},
        "plane": "compute",
        "priority": 100,
        "tier": "leaf",
        "proved": True,
        "groups": [
            {
                "name": "workers",
                "request": {"nvidia.com/gpu": 8},
                "pods": [{"node": "node-1", "count": 2}, {"count": 1}],
            }
        ],
        "ttlSeconds": 60,
    },
    "status": {"phase": "reserved", "epoch": 3, "expiresAt": NOW},
}
RECORD: Final[Mapping[str, Any]] = {
    "spec": render_tree_record(TreeRecord(EMPTY_TREE, RecentChanges({"node-1": 1})))["spec"]
}
EXAMPLES: Final[Mapping[Resource, Mapping[str, Any]]] = {
    REPORTS: REPORT,
    FABRICS: FABRIC,
    RESERVATIONS: RESERVATION,
    RECORDS: RECORD,
}
PARSERS: Final = {
    REPORTS: parse_report,
    FABRICS: parse_fabric_document,
    RESERVATIONS: parse_reservation,
    RECORDS: parse_tree_record,
}


def made(resource: Resource, *, change: Change | None = None, name: str = "") -> dict[str, Any]:
    """Return the example object with changes."""
    drawn = "default" if resource in (FABRICS, RECORDS) else f"test-{secrets.token_hex(4)}"
    found: dict[str, Any] = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name or drawn},
        **copy.deepcopy(dict(EXAMPLES[resource])),
    }
    for path, value in (change or {}).items():
        *steps, last = (int(step) if step.isdecimal() else step for step in path.split("."))
        at: Any = found
        for step in steps:
            at = at[step]
        if value is MISSING:
            del at[last]
        else:
            at[last] = value
    return found
