"""What a replica of a cluster adds to a server's ports: its standing, Events, judged tokens."""

from __future__ import annotations

from time import monotonic

from generator.kube.resources import RESERVATIONS
from generator.rpc.auth.tokens import TokenReviews
from generator.server.endpoints import Membership
from generator.server.replica import Replica
from generator.telemetry.events import Events, Reporter
from generator.telemetry.metrics import ClusterView, Metrics
from runtime.clock import utc_now


def membership_of(replica: Replica, metrics: Metrics, *, audience: str | None) -> Membership:
    """Return what this replica adds.

    Args:
        replica: that is served.
        metrics: take what becomes of Events.
        audience: that tokens must be made for; None: no token is asked for.
    """
    store, elector = replica.store, replica.elector

    def view() -> ClusterView:
        watches = {**store.watches, RESERVATIONS.plural: replica.reservations.num_watches}
        return ClusterView(elector.is_leader, elector.epoch, watches)

    def why_not_ready() -> str:
        if store.is_synced:
            return ""
        return "; ".join(store.problems) or "the cluster is not listed yet"

    def why_dead() -> str:
        return "" if replica.is_alive else "a thread ended that follows, or stands for leader"

    return Membership(
        view=view,
        why_not_ready=why_not_ready,
        why_dead=why_dead,
        events=Events(
            replica.transport,
            Reporter(replica.identity, utc_now(), utc_now, monotonic),
            may_tell=replica.leads,
            on_event=metrics.on_event,
        ),
        tokens=TokenReviews(replica.transport, audience, clock=monotonic) if audience else None,
    )
