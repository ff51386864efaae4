"""What `toponaut doctor` asks a cluster: one bounded request for each fact, each may fail alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from generator.cli.commands.doctor.facts import ClusterFacts, CrdFact, Fact, ReportFact
from generator.kube.access import ClusterAccess
from generator.kube.credentials import find_credentials
from generator.kube.resources import CONFIG_MAPS, FABRICS, LEASES, NODES, REPORTS
from generator.kube.transport import KubeRequest, KubeTransport
from generator.server.replica import LEASE_NAME
from topology.model.errors import KubeError, KubeNotFound, KubeUnavailable, show
from topology.reports.fabric_status import FABRIC_NAME

TIMEOUT_S: Final = 15.0
_PAGE_SIZE: Final = 500
_MAX_PAGES: Final = 1_000
_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_VOLCANO_CONFIG: Final = ("volcano-scheduler-configmap", "volcano-controller-configmap")


def fetch_cluster_facts(
    access: ClusterAccess,
    environ: Mapping[str, str],
    *,
    namespace: str,
    volcano_namespace: str,
) -> ClusterFacts:
    """Return the facts of a cluster. A request that fails costs that fact.

    Args:
        access: to the cluster.
        environ: the environment, for credentials.
        namespace: of Toponaut.
        volcano_namespace: of Volcano.

    Raises:
        ConfigError: there are no credentials, or they are unusable.
        KubeUnavailable: the API server does not answer.
    """
    with _connect(access, environ) as get:
        version = _read(get, "/version")
        config = [
            _read(get, CONFIG_MAPS.path(name, namespace=volcano_namespace))
            for name in _VOLCANO_CONFIG
        ]
        return ClusterFacts(
            version=version,
            crds=_read_list(get, _CRDS, _parse_crd, dict),
            fabric=_read(get, FABRICS.path(FABRIC_NAME)),
            lease=_read(get, LEASES.path(LEASE_NAME, namespace=namespace)),
            nodes=_read_list(get, NODES.path(), _parse_name, tuple),
            reports=_read_list(get, REPORTS.path(), _parse_report, tuple),
            scheduler_config=config[0],
            controller_config=config[1],
        )


Get = Callable[[str, tuple[tuple[str, str], ...]], Any]
"""Returns the decoded answer to a GET request of a path with a query."""


@contextmanager
def _connect(access: ClusterAccess, environ: Mapping[str, str]) -> Iterator[Get]:
    load = find_credentials(kubeconfig=access.kubeconfig, context=access.context, environ=environ)
    transport = KubeTransport(load)
    try:
        yield lambda path, query: json.loads(
            transport.ask(KubeRequest("GET", path, query), timeout_s=TIMEOUT_S)
        )
    finally:
        transport.close()


def _read(get: Get, path: str) -> Fact:
    """Return one object.

    Raises:
        KubeUnavailable: the API server does not answer.
    """
    try:
        return Fact(get(path, ()))
    except KubeNotFound:
        return Fact()
    except KubeUnavailable:
        raise
    except (KubeError, ValueError) as error:
        return Fact(problem=show(str(error), 400))


def _read_list(
    get: Get,
    path: str,
    parse: Callable[[Mapping[str, Any]], Any],
    collect: Callable[[list[Any]], Any],
) -> Fact:
    """Return all objects of a kind, each reduced while its page is read."""
    found: list[Any] = []
    token = ""
    for _ in range(_MAX_PAGES):
        query = (("limit", str(_PAGE_SIZE)), *((("continue", token),) if token else ()))
        try:
            page = get(path, query)
            found += [parse(item) for item in page["items"]]
            token = page["metadata"].get("continue", "")
        except KubeNotFound:
            return Fact()
        except KubeUnavailable:
            raise
        except (KubeError, ValueError, KeyError, TypeError, AttributeError) as error:
            return Fact(problem=show(str(error), 400))
        if not token:
            break
    return Fact(collect(found))


def _parse_name(item: Mapping[str, Any]) -> str:
    return str(item["metadata"]["name"])


def _parse_report(item: Mapping[str, Any]) -> ReportFact:
    observed_at = (item.get("status") or {}).get("observedAt")
    return ReportFact(_parse_name(item), observed_at if isinstance(observed_at, str) else "")


def _parse_crd(item: Mapping[str, Any]) -> tuple[str, CrdFact]:
    versions = item["spec"]["versions"]
    conditions = (item.get("status") or {}).get("conditions") or []
    return _parse_name(item), CrdFact(
        frozenset(row["name"] for row in versions if row["served"]),
        any(row["type"] == "Established" and row["status"] == "True" for row in conditions),
    )
