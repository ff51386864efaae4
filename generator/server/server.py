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
from generator.reconcile.debounce import Pace
from generator.reconcile.writer import Writing, always
from generator.reservations.ledger import Reservations
from generator.reservations.sqlite import FILE_NAME, SqliteReservations
from generator.reservations.store import ReservationStore
from generator.rpc.published import Published
from generator.rpc.reservation_service import ReservingCalls
from generator.rpc.server import PlacementServer
from generator.server.endpoints import Ports
from generator.server.loop import LoopConfig, ReconcileLoop
from generator.server.settings import ServeSettings, Walked
from generator.store.base import ServedStore
from generator.store.watched_directory import ServedFolder
from generator.switches.poller import SwitchRounds
from runtime.clock import utc_now
from runtime.periodic import PeriodicJob
from topology.model.errors import ConfigError

log = logging.getLogger(__name__)

STOP_S: Final = 10.0
"""From the signal to the end; calls and the round in progress may finish meanwhile."""
RESERVATIONS_S: Final = 5.0
"""Between looks at what has become due; that it holds no more is known at once."""
GATHER_S: Final = 1.0
"""From a change to the round that sees it, and what else changes meanwhile."""


class Ground(Protocol):
    """What is served: a folder, or a cluster as one of its replicas."""

    @property
    def store(self) -> ServedStore:
        """What is read and written."""
        ...

    @property
    def reservations(self) -> ReservationStore:
        """What keeps reservations."""
        ...

    def leads(self) -> bool:
        """Return whether we are the one that writes."""
        ...

    def advertise(self, address: str) -> None:
        """Let others know where we answer calls; before `following`."""
        ...

    def following(self, wake: Callable[[], None]) -> AbstractContextManager[object]:
        """Return a context in which `wake` is called when something changed."""
        ...

    def stop_writing(self) -> None:
        """Begin no further write; the one in progress may end."""
        ...

    def leave(self) -> None:
        """Let another one write: none of ours is under way any more."""
        ...


class FolderGround:
    """A folder: nobody else writes into it, and nothing tells of changes."""

    def __init__(self, root: Path, nodes: Path | None) -> None:
        """Read what is stored.

        Raises:
            ConfigError: the inventory cannot be read.
            StoreError: the folders of the store, or its reservations, cannot be read.
        """
        self.store = ServedFolder(root, nodes)
        self.reservations = SqliteReservations(root / FILE_NAME)

    def leads(self) -> bool:
        """Return that we are the one."""
        return always()

    def advertise(self, address: str) -> None:
        """Do nothing: there is nobody else."""

    def following(self, wake: Callable[[], None]) -> AbstractContextManager[object]:
        """Return a context that tells nothing."""
        return nullcontext(wake)

    def stop_writing(self) -> None:
        """Do nothing: every write to a folder is whole or not there at all."""

    def leave(self) -> None:
        """Close what is open; nothing would be lost without it."""
        self.reservations.close()


class Running:
    """Everything that runs, from its start to its end."""

    def __init__(self, settings: ServeSettings, ground: Ground, ports: Ports) -> None:
        """Start to answer and to turn.

        Args:
            settings: how to serve.
            ground: what to serve.
            ports: that are open already; told how rounds and calls ended.

        Raises:
            ConfigError: an address is taken, or a file cannot be used.
        """
        self._ground = ground
        self._ready_file = settings.ready_file
        self._walks = _walks(settings.switches, ground.store) if settings.switches else None
        published = Published(occupied=lambda: reservations.snapshot)
        self._reservations = reservations = Reservations(
            ground.reservations, now=utc_now, clock=time.monotonic, on_change=published.touch
        )
        ports.show_reservations(reservations.census)
        self._ports = ports
        self._server = PlacementServer(
            settings.listen,
            published,
            security=ports.security,
            on_query=ports.on_query,
            reserving=ReservingCalls(reservations),
        )

        def publish(snapshot: Snapshot, pods: Sequence[BoundPod]) -> None:
            reservations.publish(snapshot, pods)
            published.snapshot = snapshot
            self._server.set_serving()

        try:
            pace = Writing(Pace(), time.monotonic, is_dry=settings.is_dry, leads=ground.leads)
            course = LoopConfig(
                period=timedelta(seconds=settings.period_s),
                now=utc_now,
                writing=pace,
                planes=settings.planes,
                walks=self._walks,
                on_round=(*ports.on_rounds, published.on_round),
            )
            rounds = ReconcileLoop(ground.store, course, publish=publish)
            ground.advertise(self._server.address)
            announce(self._server.address, settings.ready_file)
            self._schedules = self._turn(rounds, settings)
        except BaseException:
            self._server.stop(deadline_s=0)
            raise

    def wake(self) -> None:
        """Let a round begin soon; any thread may ask."""
        for one in self._schedules[:2]:
            one.wake(GATHER_S)

    def stop(self) -> None:
        """End it all within seconds; the process ends here where a round does not."""
        ends_at = time.monotonic() + STOP_S
        if self._walks is not None:
            self._walks.stop()
        if self._ready_file is not None:
            self._ready_file.unlink(missing_ok=True)
        self._ground.stop_writing()
        self._server.stop(deadline_s=STOP_S / 2)
        ended = [
            one.stop(deadline_s=max(0.0, ends_at - time.monotonic())) for one in self._schedules
        ]
        self._ports.stop()
        if all(ended):
            self._ground.leave()
            log.info("generator stopped")
            return
        # Every write is whole or not there at all, so a round may be left in the middle; its
        # thread would keep the interpreter from ending. A lease is left to expire.
        log.warning("generator stopped within a round")
        os._exit(0)

    def _turn(self, rounds: ReconcileLoop, settings: ServeSettings) -> list[PeriodicJob]:
        schedules = [
            PeriodicJob(rounds.tick, period_s=settings.period_s, now=utc_now),
            PeriodicJob(self._reservations.tick, period_s=RESERVATIONS_S, now=utc_now),
        ]
        if self._walks is not None and settings.switches is not None:
            period_s = settings.switches.period_s
            schedules.append(PeriodicJob(self._walk, period_s=period_s, now=utc_now))
        return schedules

    def _walk(self) -> None:
        """Walk switches, if their reports are ours to write, and those of before are known."""
        if self._walks is not None and self._ground.leads() and self._ground.store.is_synced:
            self._walks.tick()


def serve(
    settings: ServeSettings, ground: Ground, ports: Ports, wait_for_stop: Callable[[], str]
) -> None:
    """Serve until a signal comes; the ports are stopped, however it ends.

    Raises:
        ConfigError: an address is taken, or a file cannot be used.
    """
    try:
        running = Running(settings, ground, ports)
    except BaseException:
        ports.stop()
        raise
    with ground.following(running.wake):
        log.info("generator stopping", extra={"signal": wait_for_stop()})
        running.stop()


def announce(address: str, ready_file: Path | None) -> None:
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


def _walks(walked: Walked, store: ServedStore) -> SwitchRounds:
    from generator.switches.session import SnmpSession  # noqa: PLC0415 - who walks no switch pays none

    return SwitchRounds(
        walked.config,
        store=store,
        period=timedelta(seconds=walked.period_s),
        deadline=timedelta(seconds=walked.deadline_s),
        now=utc_now,
        clock=time.monotonic,
        open_session=SnmpSession,
    )
