"""The names of reports in a folder, as the list of nodes gives them. Pure.

In a cluster, an agent knows its node's name. Elsewhere an agent reports under the name that its
host gives itself, which may be one of the host names of a listed node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from generator.objects.inventory import Inventory
from generator.store.base import StoredReports
from topology.identity.node_names import build_node_names
from topology.model.facts import DeviceKind
from topology.reports.packed_reports import PackedReport, bind_to_node, pack_device

_SWEEP: Final = ".sweep."


def name_reports_as_listed(stored: StoredReports, inventory: Inventory | None) -> StoredReports:
    """Return the reports under the names of listed nodes, where a name means one such node.

    A node that reports under its own name keeps its report. The same object is returned if nothing
    changes.
    """
    listed = {node.name for node in inventory.nodes} if inventory else set[str]()
    hosts = {one.name for one in stored.reports if one.device_kind is DeviceKind.HOST}
    unlisted = hosts - listed
    if inventory is None or not unlisted:
        return stored
    names = build_node_names(inventory.ids_by_node, unlisted)
    meant = {name: node for name in sorted(unlisted) if (node := names.find(name)) is not None}
    counts = Counter([*meant.values(), *(hosts & listed)])
    chosen = {name: node for name, node in meant.items() if counts[node] == 1}
    if not chosen:
        return stored
    renamed = (_rename(report, chosen) for report in stored.reports)
    return stored._replace(reports=tuple(sorted(renamed, key=lambda one: one.name)))


def _rename(report: PackedReport, chosen: Mapping[str, str]) -> PackedReport:
    """Return a report of a node, or a part of its sweep, under the name of the node."""
    reporter, mark, part = report.name.partition(_SWEEP)
    node, device = chosen.get(reporter), report.device
    if node is None:
        return report
    if device is not None:
        return replace(report, name=node, packed=pack_device(bind_to_node(device, node)))
    return replace(report, name=f"{node}{mark}{part}")
