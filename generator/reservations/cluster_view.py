"""What is reserved in a cluster, read once: for commands that place without a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from generator.kube.access import ClusterAccess
from generator.kube.resources import RESERVATIONS
from generator.objects.pods import BoundPod, parse_bound_pod
from generator.reservations.cluster import parse_stored
from generator.reservations.holds import ReservedNodes, compute_usage, build_nominations
from generator.reservations.records import Reservation
from generator.reservations.rules import expire_if_due
from generator.store.cluster import open_cluster
from runtime.clock import utc_now
from topology.model.errors import ConfigError, KubeForbidden, KubeNotFound, ParseError


class FetchedReservations(NamedTuple):
    """All reservations of a cluster."""

    reservations: tuple[Reservation, ...]
    """As they are now, in order of ids."""
    problems: tuple[ParseError, ...]


def fetch_reservations(access: ClusterAccess, environ: Mapping[str, str]) -> FetchedReservations:
    """Return all reservations; a cluster without their kind has none.

    Raises:
        ConfigError: there are no credentials, or they are no use.
        KubeError: they cannot be listed.
    """
    with open_cluster(access, environ) as store:
        try:
            told = store.read_objects(RESERVATIONS, parse_stored)
        except KubeNotFound:
            return FetchedReservations((), ())
    now = utc_now()
    found = (one.reservation for one in told.values if one.reservation is not None)
    return FetchedReservations(
        tuple(expire_if_due(one, now=now, epoch=one.epoch) for one in found), told.problems
    )


def fetch_reserved_nodes(
    access: ClusterAccess, environ: Mapping[str, str], pods: Iterable[Mapping[str, Any]]
) -> ReservedNodes:
    """Return what is kept for pods that are not bound yet.

    Who may not list reservations is told so, and places without them.

    Args:
        access: to the cluster.
        environ: the environment.
        pods: that have a node, as the API server has them.

    Raises:
        ConfigError: there are no credentials, or they are no use.
        KubeError: reservations cannot be listed.
    """
    try:
        known = fetch_reservations(access, environ)
    except KubeForbidden as error:
        return ReservedNodes({}, (ParseError(f"reservations are not counted: {error}"),))
    held = [one for one in known.reservations if not one.is_ended]
    left = compute_usage(known.reservations, _parse_bound_pods(pods) if held else ())
    return ReservedNodes(build_nominations(held, left), known.problems)


def _parse_bound_pods(pods: Iterable[Mapping[str, Any]]) -> Iterable[BoundPod]:
    for pod in pods:
        try:
            found = parse_bound_pod(pod)
        except ConfigError:
            continue  # told already by who counts what pods take
        if found is not None:
            yield found
