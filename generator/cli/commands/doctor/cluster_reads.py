"""What `toponaut doctor` asks a cluster: bounded requests for each fact, each of which may fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, Final

from generator.cli.commands.doctor.facts import ClusterFacts, CrdFact, Fact, ReportFact
from generator.kube.access import ClusterAccess
from generator.kube.credentials import find_credentials
from generator.kube.paged_list import Paging, fetch_objects
from generator.kube.resources import CONFIG_MAPS, CRDS, FABRICS, LEASES, NODES, REPORTS, Resource
from generator.kube.transport import KubeRequest, KubeTransport, Transport, decode_object
from generator.server.replica import LEASE_NAME
from topology.model.errors import KubeError, KubeNotFound, KubeUnavailable, show
from topology.reports.fabric_status import FABRIC_NAME

TIMEOUT_S: Final = 15.0
_PAGES: Final = Paging(request_timeout_s=TIMEOUT_S)
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
    load = find_credentials(kubeconfig=access.kubeconfig, context=access.context, environ=environ)
    with closing(KubeTransport(load)) as transport:
        version = _read(transport, "/version")
        config = [
            _read(transport, CONFIG_MAPS.path(name, namespace=volcano_namespace))
            for name in _VOLCANO_CONFIG
        ]
        return ClusterFacts(
            version=version,
            crds=_read_list(transport, CRDS, _parse_crd, dict),
            fabric=_read(transport, FABRICS.path(FABRIC_NAME)),
            lease=_read(transport, LEASES.path(LEASE_NAME, namespace=namespace)),
            nodes=_read_list(transport, NODES, _parse_name, tuple),
            reports=_read_list(transport, REPORTS, _parse_report, tuple),
            scheduler_config=config[0],
            controller_config=config[1],
        )


def _read(transport: Transport, path: str) -> Fact:
    """Return one object.

    Raises:
        KubeUnavailable: the API server does not answer.
    """
    request = KubeRequest("GET", path)
    return _as_fact(
        lambda: decode_object(str(request), transport.ask(request, timeout_s=TIMEOUT_S))
    )


def _read_list(
    transport: Transport,
    resource: Resource,
    parse: Callable[[Mapping[str, Any]], Any],
    collect: Callable[[list[Any]], Any],
) -> Fact:
    """Return all objects of a kind, each reduced while its page is read.

    Raises:
        KubeUnavailable: the API server does not answer.
    """
    return _as_fact(
        lambda: collect([parse(item) for item in fetch_objects(transport, resource, [], _PAGES)])
    )


def _as_fact(read: Callable[[], Any]) -> Fact:
    """Return what is read, or why it cannot be read."""
    try:
        return Fact(read())
    except KubeNotFound:
        return Fact()
    except KubeUnavailable:
        raise
    except (KubeError, ValueError, KeyError, TypeError, AttributeError) as error:
        return Fact(problem=show(str(error), 400))


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
