"""What a replica of a cluster adds to a server's ports: its standing, Events, judged tokens."""

from __future__ import annotations

from time import monotonic

from generator.kube.resources import RESERVATIONS
from generator.rpc.auth.tokens import TokenReviews
from generator.server.endpoints import ReplicaEndpoints
from generator.server.replica import Replica
from generator.telemetry.events import EventWriter, EventSource
from generator.telemetry.metrics import LeadershipSample, GeneratorMetrics
from runtime.clock import utc_now


def build_replica_endpoints(
    replica: Replica, metrics: GeneratorMetrics, *, audience: str | None
) -> ReplicaEndpoints:
    """Return what this replica adds.

    Args:
        replica: that is served.
        metrics: take what becomes of Events.
        audience: that tokens must be made for; None: no token is asked for.
    """
    store, elector = replica.store, replica.elector

    def view() -> LeadershipSample:
        watches = {**store.watches, RESERVATIONS.plural: replica.reservations.num_watches}
        return LeadershipSample(elector.is_leader, elector.epoch, watches)

    def why_not_ready() -> str:
        if store.is_synced:
            return ""
        return "; ".join(store.problems) or "the cluster is not listed yet"

    def why_dead() -> str:
        return "" if replica.is_alive else "a thread ended that follows, or stands for leader"

    return ReplicaEndpoints(
        cluster_view=view,
        readiness_problem=why_not_ready,
        liveness_problem=why_dead,
        events=EventWriter(
            replica.transport,
            EventSource(replica.identity, utc_now(), utc_now, monotonic),
            is_leader=replica.is_leader,
            on_event=metrics.on_event,
        ),
        token_check=TokenReviews(replica.transport, audience, clock=monotonic)
        if audience
        else None,
    )
