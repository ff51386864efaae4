"""What runs while a server serves: the loop, the calls, the walks, and an end in order.

The order of the end matters in a cluster: no new write, the one in progress done, then the lease
released, so that the next leader never meets a write of ours.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

from generator.objects.pods import BoundPod
from generator.placement.cluster.snapshot import Snapshot
from generator.reconcile.debounce import DebounceConfig
from generator.reconcile.writer import WriteSettings, always_leader
from generator.reservations.ledger import ReservationLedger
from generator.reservations.sqlite import FILE_NAME, SqliteReservations
from generator.reservations.store import ReservationStore
from generator.rpc.published import PublishedState
from generator.rpc.reservation_service import ReservationServicer
from generator.rpc.server import PlacementServer
from generator.server.endpoints import Endpoints
from generator.server.loop import LoopConfig, ReconcileLoop
from generator.server.settings import ServerSettings, SwitchPollSettings
from generator.store.base import ServedStore
from generator.store.watched_directory import WatchedDirectory
from generator.switches.poller import SwitchPoller
from runtime.clock import utc_now
from runtime.periodic import PeriodicJob
from topology.model.errors import ConfigError

log = logging.getLogger(__name__)

SHUTDOWN_S: Final = 10.0
"""From the signal to the end; calls and the round in progress may finish meanwhile."""
RESERVATION_PERIOD_S: Final = 5.0
"""Between looks at what has become due; that it holds no more is known at once."""
WAKE_DELAY_S: Final = 1.0
"""From a change to the round that sees it, and what else changes meanwhile."""


class Backend(Protocol):
    """What is served: a folder, or a cluster as one of its replicas."""

    @property
    def store(self) -> ServedStore:
        """What is read and written."""
        ...

    @property
    def reservations(self) -> ReservationStore:
        """What keeps reservations."""
        ...

    def is_leader(self) -> bool:
        """Return whether we are the one that writes."""
        ...

    def advertise(self, address: str) -> None:
        """Let others know where we answer calls; before `following`."""
        ...

    def follow(self, wake: Callable[[], None]) -> AbstractContextManager[object]:
        """Return a context in which `wake` is called when something changed."""
        ...

    def stop_writing(self) -> None:
        """Begin no further write; the one in progress may end."""
        ...

    def release(self) -> None:
        """Let another one write: none of ours is under way any more."""
        ...


class FolderBackend:
    """A folder: nobody else writes into it, and nothing tells of changes."""

    def __init__(self, root: Path, nodes: Path | None) -> None:
        """Read what is stored.

        Raises:
            ConfigError: the inventory cannot be read.
            StoreError: the folders of the store, or its reservations, cannot be read.
        """
        self.store = WatchedDirectory(root, nodes)
        self.reservations = SqliteReservations(root / FILE_NAME)

    def is_leader(self) -> bool:
        """Return that we are the one."""
        return always_leader()

    def advertise(self, address: str) -> None:
        """Do nothing: there is nobody else."""

    def follow(self, wake: Callable[[], None]) -> AbstractContextManager[object]:
        """Return a context that tells nothing."""
        return nullcontext(wake)

    def stop_writing(self) -> None:
        """Do nothing: every write to a folder is whole or not there at all."""

    def release(self) -> None:
        """Close what is open; nothing would be lost without it."""
        self.reservations.close()


class GeneratorServer:
    """Everything that runs, from its start to its end."""

    def __init__(self, settings: ServerSettings, ground: Backend, ports: Endpoints) -> None:
        """Start to answer and to turn.

        Args:
            settings: how to serve.
            ground: what to serve.
            ports: that are open already; told how rounds and calls ended.

        Raises:
            ConfigError: an address is taken, or a file cannot be used.
        """
        self._backend = ground
        self._ready_file = settings.ready_file
        self._switch_poller = (
            _build_poller(settings.switches, ground.store) if settings.switches else None
        )
        published = PublishedState(read_occupied=lambda: reservations.snapshot)
        self._reservations = reservations = ReservationLedger(
            ground.reservations,
            now=utc_now,
            clock=time.monotonic,
            on_change=published.notify_changed,
        )
        ports.add_reservation_metrics(reservations.count_reserved)
        self._endpoints = ports
        self._server = PlacementServer(
            settings.listen,
            published,
            security=ports.security,
            on_query=ports.on_query,
            reservation_calls=ReservationServicer(reservations),
        )

        def publish(snapshot: Snapshot, pods: Sequence[BoundPod]) -> None:
            reservations.publish(snapshot, pods)
            published.snapshot = snapshot
            self._server.set_serving()

        try:
            pace = WriteSettings(
                DebounceConfig(),
                time.monotonic,
                is_dry_run=settings.is_dry,
                is_leader=ground.is_leader,
            )
            course = LoopConfig(
                period=timedelta(seconds=settings.period_s),
                now=utc_now,
                writing=pace,
                planes=settings.planes,
                switch_poller=self._switch_poller,
                round_listeners=(*ports.round_listeners, published.on_round),
            )
            rounds = ReconcileLoop(ground.store, course, publish=publish)
            ground.advertise(self._server.address)
            report_address(self._server.address, settings.ready_file)
            self._schedules = self._start_schedules(rounds, settings)
        except BaseException:
            self._server.stop(deadline_s=0)
            raise

    def wake(self) -> None:
        """Let a round begin soon; any thread may ask."""
        for one in self._schedules[:2]:
            one.wake(WAKE_DELAY_S)

    def stop(self) -> None:
        """End it all within seconds; the process ends here where a round does not."""
        ends_at = time.monotonic() + SHUTDOWN_S
        if self._switch_poller is not None:
            self._switch_poller.stop()
        if self._ready_file is not None:
            self._ready_file.unlink(missing_ok=True)
        self._backend.stop_writing()
        self._server.stop(deadline_s=SHUTDOWN_S / 2)
        ended = [
            one.stop(deadline_s=max(0.0, ends_at - time.monotonic())) for one in self._schedules
        ]
        self._endpoints.stop()
        if all(ended):
            self._backend.release()
            log.info("generator stopped")
            return
        # Every write is whole or not there at all, so a round may be left in the middle; its
        # thread would keep the interpreter from ending. A lease is left to expire.
        log.warning("generator stopped within a round")
        os._exit(0)

    def _start_schedules(
        self, rounds: ReconcileLoop, settings: ServerSettings
    ) -> list[PeriodicJob]:
        schedules = [
            PeriodicJob(rounds.tick, period_s=settings.period_s, now=utc_now),
            PeriodicJob(self._reservations.tick, period_s=RESERVATION_PERIOD_S, now=utc_now),
        ]
        if self._switch_poller is not None and settings.switches is not None:
            period_s = settings.switches.period_s
            schedules.append(PeriodicJob(self._poll_switches, period_s=period_s, now=utc_now))
        return schedules

    def _poll_switches(self) -> None:
        """Walk switches, if their reports are ours to write, and those of before are known."""
        if (
            self._switch_poller is not None
            and self._backend.is_leader()
            and self._backend.store.is_synced
        ):
            self._switch_poller.tick()


def serve(
    settings: ServerSettings, ground: Backend, ports: Endpoints, wait_for_stop: Callable[[], str]
) -> None:
    """Serve until a signal comes; the ports are stopped, however it ends.

    Raises:
        ConfigError: an address is taken, or a file cannot be used.
    """
    try:
        running = GeneratorServer(settings, ground, ports)
    except BaseException:
        ports.stop()
        raise
    with ground.follow(running.wake):
        log.info("generator stopping", extra={"signal": wait_for_stop()})
        running.stop()


def report_address(address: str, ready_file: Path | None) -> None:
    """Tell the bound address; the file appears whole or not at all.

    Raises:
        ConfigError: the file cannot be written.
    """
    log.info("generator ready", extra={"address": address})
    if ready_file is None:
        return
    try:
        number, temporary = tempfile.mkstemp(prefix=".", dir=ready_file.parent)
        with open(number, "w", encoding="ascii") as stream:  # noqa: PTH123 - an open descriptor
            stream.write(f"{address}\n")
        Path(temporary).replace(ready_file)
    except OSError as error:
        raise ConfigError(f"cannot write {ready_file}: {error.strerror}") from error


def _build_poller(walked: SwitchPollSettings, store: ServedStore) -> SwitchPoller:
    from generator.switches.session import SnmpSession  # noqa: PLC0415 - who walks no switch pays none

    return SwitchPoller(
        walked.config,
        store=store,
        period=timedelta(seconds=walked.period_s),
        deadline=timedelta(seconds=walked.deadline_s),
        now=utc_now,
        clock=time.monotonic,
        open_session=SnmpSession,
    )
