"""The kinds of objects that a store keeps, and how each is read and written.

Reports of a cluster are packed when they arrive, and weighed for the quota of the sender.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

import yaml

from generator.kube import resources
from generator.kube.cache import Listing, Parse, Quota
from generator.kube.resources import Resource
from generator.objects.inventory import ListedNode, parse_node
from generator.objects.pods import FollowedPod, parse_followed_pod
from generator.objects.tree_record import TreeRecord, parse_tree_record
from generator.outputs.hypernode.model import HyperNode, parse_manifest
from generator.store.object_files import YAML_DUMPER, render_json
from generator.store.object_folders import list_reports
from runtime.retry import Backoff
from topology.model.facts import DeviceKind
from topology.reports.neighbor_report import ReportStatus, parse_stored_report
from topology.reports.packed_reports import PackedReport, pack_report

_OBJECT_BYTES: Final = 1000
_NEIGHBOR_BYTES: Final = 400
"""Memory of a neighbor entry in a fabric, where many hosts hear the same switches."""
_USUAL_NEIGHBORS: Final = 16
_UNUSUAL_NEIGHBOR_BYTES: Final = 1500
"""More of each further entry: those that a hostile report invents are devices of their own."""
_USUAL_IDS: Final = {DeviceKind.HOST: 4}
_MOST_USUAL_IDS: Final = 8
"""Ids of a neighbor entry; switches list the addresses of their neighbors."""
_UNUSUAL_ID_BYTES: Final = 400
"""Memory of each further id: a fabric joins devices by it."""


def read_stored_report(document: object) -> PackedReport:
    """Return the report in a decoded object, as `parse_stored_report` does.

    Raises:
        ReportError: as `parse_stored_report` does.
    """
    return pack_report(parse_stored_report(document))


def _weigh(report: PackedReport) -> int:
    """Return the bytes of a report in memory, with its facts unpacked as for building a fabric."""
    device, size = report.device, _weigh_status(report.status)
    if device is None:
        return size + (len(report.sweep.facts) if report.sweep else 0)
    entries = [neighbor for port in device.ports for neighbor in port.neighbors]
    # A host's neighbors above `MAX_HOST_NEIGHBORS` are left out, but were read before.
    num_unusual = max(0, len(entries) - _USUAL_NEIGHBORS) if device.kind is DeviceKind.HOST else 0
    size += len(entries) * _NEIGHBOR_BYTES + num_unusual * _UNUSUAL_NEIGHBOR_BYTES
    num_ids = sum(len(entry.device_ids) + len(entry.port_ids) for entry in entries)
    num_usual_ids = len(entries) * _USUAL_IDS.get(device.kind, _MOST_USUAL_IDS)
    return size + max(0, num_ids - num_usual_ids) * _UNUSUAL_ID_BYTES + report.num_bytes


def _weigh_status(status: ReportStatus) -> int:
    standing = status.sweeping
    subnets = (*standing.failed, *standing.refused) if standing else ()
    outcomes = (collector.name + collector.message for collector in status.collectors)
    lists = (*status.flapping, *subnets, *outcomes)
    return _OBJECT_BYTES + sum(_OBJECT_BYTES // 10 + len(text) for text in lists)


REPORT_QUOTA: Final = Quota(
    limit_bytes=192 << 20,
    find_sender=lambda name: name.partition(".sweep.")[0],
    weigh=_weigh,
)
"""25,000 hosts with 8 HCAs each take 100 MiB, with 8 LLDP neighbors each 170 MiB, and a sweep of
200,000 HCAs takes 15 MiB."""


Value = TypeVar("Value")

_MAX_YAML_MEMBERS: Final = 5000


class WritePace(NamedTuple):
    """How fast a cluster's objects of a kind are written, and how long a write is tried."""

    per_second: int
    burst: int
    max_attempts: int
    timeout_s: float = 30.0
    """The limit of one attempt."""
    backoff: Backoff = Backoff()
    """The waits between attempts."""


CAREFUL: Final = WritePace(per_second=10, burst=100, max_attempts=4)
"""For what a scheduler follows closely."""
BULK: Final = WritePace(per_second=50, burst=50, max_attempts=2)
"""For labels and other writes that may number 100,000."""
URGENT: Final = WritePace(
    per_second=50, burst=200, max_attempts=2, timeout_s=5.0, backoff=Backoff(0.2, 1.0)
)
"""For what a caller waits for."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind(Generic[Value]):
    """A kind of objects, and the value that is kept of each."""

    resource: Resource
    parse: Parse[Value]
    """Returns the value of a decoded object."""
    pace: WritePace = CAREFUL
    is_private: bool = False
    """Whether only Toponaut creates such objects, so that no name is taken."""
    has_status: bool = False
    """Whether the status is a subresource."""
    page_size: int = 500
    """The page size of a cluster's lists."""
    query: tuple[tuple[str, str], ...] = ()
    """The query of a cluster's lists and watches, such as a selector."""
    quota: Quota[Any] | None = None
    """How much memory the values may take."""
    older_versions: tuple[str, ...] = ()
    """Versions with the same fields, which are used where the cluster does not serve the newest."""
    is_optional: bool = False
    """Whether a server goes on in a cluster that does not serve the kind."""
    list_folder: Callable[[Path], Listing[Value]] | None = None
    """Reads a folder in which files may have any names; None: the object NAME is in NAME.yaml."""
    keep_cut: Callable[[Value], Value | None] = lambda _: None
    """Returns what counts of a file that may be cut; None: nothing."""
    render_text: Callable[[Mapping[str, Any]], str] = render_json
    """Returns the content of a file."""


def _keep_own(hypernode: HyperNode) -> HyperNode | None:
    """Return our HyperNode of a file that may be cut, so that it differs from what is desired.

    Toponaut ends every file with a line break, so this file is damaged and is written anew.
    """
    if not hypernode.is_ours:
        return None
    return replace(hypernode, num_inexact_members=hypernode.num_inexact_members + 1)


def _render_manifest_text(document: Mapping[str, Any]) -> str:
    """Return YAML for people; JSON of many members, which is read and written 20 times faster."""
    if len(document["spec"]["members"]) > _MAX_YAML_MEMBERS:
        return render_json(document)
    return str(yaml.dump(document, Dumper=YAML_DUMPER, sort_keys=False))


REPORTS: Final[Kind[PackedReport]] = Kind(
    resources.REPORTS,
    read_stored_report,
    is_private=True,
    has_status=True,
    page_size=50,  # the report of a switch has 60 KB, and needs ten times as much while decoded
    quota=REPORT_QUOTA,
    list_folder=list_reports,
)
HYPERNODES: Final[Kind[HyperNode]] = Kind(
    resources.HYPERNODES,
    parse_manifest,
    is_optional=True,
    keep_cut=_keep_own,
    render_text=_render_manifest_text,
)
FABRICS: Final[Kind[Mapping[str, Any]]] = Kind(
    resources.FABRICS,
    dict,
    has_status=True,
    keep_cut=lambda document: document,  # a person may end the file without a line break
)
RECORDS: Final[Kind[TreeRecord]] = Kind(resources.RECORDS, parse_tree_record, is_private=True)
NODES: Final[Kind[ListedNode]] = Kind(resources.NODES, parse_node)
UNENDED_PODS: Final = (
    ("fieldSelector", "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="),
)
PODS: Final[Kind[FollowedPod | None]] = Kind(resources.PODS, parse_followed_pod, query=UNENDED_PODS)
"""The pods that use resources of a node."""
WHOLE_PODS: Final[Kind[Mapping[str, Any]]] = Kind(resources.PODS, dict, query=UNENDED_PODS)
"""The same pods, unparsed."""
SERVED: Final[tuple[Kind[Any], ...]] = (REPORTS, NODES, HYPERNODES, FABRICS, RECORDS, PODS)
"""The kinds that every round of a server reads."""
