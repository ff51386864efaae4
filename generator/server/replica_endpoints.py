"""What a replica of a cluster adds to a server's endpoints: leadership, Events, token checks."""

from __future__ import annotations

from time import monotonic

from generator.rpc.auth.tokens import TokenReviews
from generator.server.endpoints import ReplicaEndpoints
from generator.server.replica import Replica
from generator.telemetry.events import EventSource, EventWriter
from generator.telemetry.metrics import GeneratorMetrics, LeadershipSample
from runtime.clock import utc_now


def build_replica_endpoints(
    replica: Replica, metrics: GeneratorMetrics, *, audience: str | None
) -> ReplicaEndpoints:
    """Return what this replica adds to the endpoints.

    Args:
        replica: the replica.
        metrics: count the results of Events.
        audience: the audience that tokens must have; None: callers need no token.
    """
    store, elector = replica.store, replica.elector

    def view() -> LeadershipSample:
        return LeadershipSample(elector.is_leader, elector.epoch, replica.objects.watches)

    def readiness_problem() -> str:
        if store.is_synced:
            return ""
        return "; ".join(store.problems) or "the cluster is not listed yet"

    def liveness_problem() -> str:
        return "" if replica.is_alive else "a thread for watches or leader election ended"

    return ReplicaEndpoints(
        cluster_view=view,
        readiness_problem=readiness_problem,
        liveness_problem=liveness_problem,
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
