"""A cluster of many made-up nodes and their agents' reports, written as fast as a server takes it.

Each thread keeps one connection: the time of these writes is not measured.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, Final, NamedTuple

from generator.kube.resources import FABRICS, NODES, REPORTS
from tests.generator.scenes import kube_node
from tests.lab.api_server import ADMIN, ApiServer
from topology.model.facts import Medium
from topology.reports.fabric_status import FABRIC_NAME
from topology.reports.neighbor_report import NeighborReport, build_report, render_report
from topology.reports.sweep_parts import split_sweep
from topology.synthetic import DamagedFabric, report_claims, subnet_of, sweep_devices
from topology.synthetic.sweep_output import render_ibnetdiscover

_THREADS: Final = 6
_TIMEOUT_S: Final = 60.0
_JSON: Final = "application/json"
_MERGE: Final = "application/merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"


class Ask(NamedTuple):
    """One write."""

    method: str
    path: str
    content_type: str
    body: dict[str, Any]


def reports_of(damaged: DamagedFabric) -> Iterator[NeighborReport]:
    """Yield what all agents report: of InfiniBand a sweep too, of Ethernet the switches' views."""
    for claim in report_claims(damaged):
        yield build_report(claim.device, name=claim.report)
    if damaged.wiring.spec.medium is Medium.INFINIBAND:
        sweep = render_ibnetdiscover(sweep_devices(damaged))
        yield from split_sweep(sweep, node=sweeper_of(damaged), subnet=subnet_of(0))


def sweeper_of(damaged: DamagedFabric) -> str:
    """Return the node whose agent sweeps the subnet."""
    return damaged.wiring.hosts[0].name


def list_sweeper(api: ApiServer, node: str) -> None:
    """Create the Fabric object as a person does who allows one node to sweep."""
    fabric = {
        "apiVersion": FABRICS.api_version,
        "kind": FABRICS.kind,
        "metadata": {"name": FABRIC_NAME},
        "spec": {"sweepers": [node]},
    }
    _write_all(api, [Ask("POST", FABRICS.path(), _JSON, fabric)])


def write_nodes(api: ApiServer, names: Sequence[str]) -> None:
    """Create nodes with what they offer."""
    nodes = [kube_node(name) for name in names]
    _write_all(api, (Ask("POST", NODES.path(), _JSON, node) for node in nodes))
    # A server creates nodes as not ready, and without the fields of their status.
    ready = {"spec": {"taints": None}}
    _write_all(api, (Ask("PATCH", NODES.path(name), _MERGE, ready) for name in names))
    paths = (f"{NODES.path(name)}/status" for name in names)
    statuses = ({"status": node["status"]} for node in nodes)
    _write_all(
        api, (Ask("PATCH", path, _MERGE, body) for path, body in zip(paths, statuses, strict=True))
    )


def write_reports(api: ApiServer, reports: Iterable[NeighborReport]) -> None:
    """Apply reports."""
    asks = (
        Ask(
            "PATCH",
            f"{REPORTS.path(one.metadata.name)}?fieldManager=agent&force=true",
            _APPLY,
            render_report(one),
        )
        for one in reports
    )
    _write_all(api, asks)


def _write_all(api: ApiServer, asks: Iterable[Ask]) -> None:
    """Carry out writes, in no order.

    Raises:
        RuntimeError: the server refused one; says why.
    """
    shares: list[list[Ask]] = [[] for _ in range(_THREADS)]
    for at, ask in enumerate(asks):
        shares[at % _THREADS].append(ask)
    with ThreadPoolExecutor(_THREADS) as pool:
        for _ in pool.map(lambda share: _write(api, share), shares):
            pass


def _write(api: ApiServer, asks: Sequence[Ask]) -> None:
    tls = ssl.create_default_context(cafile=str(api.ca))
    connection = http.client.HTTPSConnection("127.0.0.1", api.port, timeout=_TIMEOUT_S, context=tls)
    with closing(connection):
        for method, path, content_type, body in asks:
            headers = {
                "Authorization": f"Bearer {api.tokens[ADMIN]}",
                "Content-Type": content_type,
            }
            connection.request(method, path, json.dumps(body).encode(), headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status >= http.client.MULTIPLE_CHOICES:
                raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]!r}")
