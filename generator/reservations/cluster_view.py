"""Reads the reservations of a cluster once, for commands that place without a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from generator.kube.access import ClusterAccess
from generator.objects.pods import BoundPod, parse_bound_pod
from generator.reservations.nominations import ReservedNodes, build_nominations, compute_usage
from generator.reservations.objects import RESERVATIONS
from generator.reservations.phases import expire_if_due
from generator.reservations.records import Reservation
from generator.store.cluster_store import open_cluster
from runtime.clock import utc_now
from topology.model.errors import ConfigError, KubeForbidden, KubeNotFound, ParseError


class FetchedReservations(NamedTuple):
    """All reservations of a cluster."""

    reservations: tuple[Reservation, ...]
    """The reservations in their present phase, sorted by id."""
    problems: tuple[ParseError, ...]
    """Objects that cannot be used."""


def fetch_reservations(access: ClusterAccess, environ: Mapping[str, str]) -> FetchedReservations:
    """Return all reservations, empty if the cluster lacks their CRD.

    Raises:
        ConfigError: there are no credentials, or they are unusable.
        KubeError: the reservations cannot be listed.
    """
    with open_cluster(access, environ) as store:
        try:
            listing = store.objects.read(RESERVATIONS)
        except KubeNotFound:
            return FetchedReservations((), ())
    now = utc_now()
    reservations = (
        object_.reservation for object_ in listing.values if object_.reservation is not None
    )
    return FetchedReservations(
        tuple(
            expire_if_due(reservation, now=now, epoch=reservation.epoch)
            for reservation in reservations
        ),
        listing.all_problems,
    )


def fetch_reserved_nodes(
    access: ClusterAccess, environ: Mapping[str, str], pods: Iterable[Mapping[str, Any]]
) -> ReservedNodes:
    """Return the nodes reserved for pods that are not bound yet.

    If listing reservations is forbidden, return none and a problem that says so.

    Args:
        access: how to reach the cluster.
        environ: the environment.
        pods: the bound pods, as the API server has them; their places are not reserved.

    Raises:
        ConfigError: there are no credentials, or they are no use.
        KubeError: reservations cannot be listed.
    """
    try:
        fetched = fetch_reservations(access, environ)
    except KubeForbidden as error:
        return ReservedNodes({}, (ParseError(f"reservations are not counted: {error}"),))
    active = [row for row in fetched.reservations if not row.is_ended]
    usages = compute_usage(fetched.reservations, _parse_bound_pods(pods) if active else ())
    return ReservedNodes(build_nominations(active, usages), fetched.problems)


def _parse_bound_pods(pods: Iterable[Mapping[str, Any]]) -> Iterable[BoundPod]:
    for pod in pods:
        try:
            bound_pod = parse_bound_pod(pod)
        except ConfigError:
            continue  # reported already when pod requests were counted
        if bound_pod is not None:
            yield bound_pod
