"""Runs a server: the reconcile loop, the gRPC port, the walks of switches, and an orderly stop.

The order of the stop matters in a cluster: start no new write, let the current one end, then
release the lease. So the next leader never meets a write of this replica.
"""

from __future__ import annotations

import logging
import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from generator.history import history_file
from generator.history.history_file import HistoryWriter
from generator.history.recorder import HistoryRecorder
from generator.objects.pods import BoundPod
from generator.observe.known_switches import KnownSwitches
from generator.outputs.formats import DEFAULT_NAMESPACE
from generator.placement.cluster.snapshot import Snapshot
from generator.reconcile.folder_outputs import FolderPublisher
from generator.reconcile.outputs import Publisher
from generator.reconcile.round_results import RoundOutcome
from generator.reconcile.settings import WriteSettings, always_leader
from generator.reconcile.write_delays import DebounceConfig
from generator.reservations.ledger import ReservationLedger
from generator.reservations.legacy_sqlite import FILE_NAME, convert_file
from generator.reservations.objects import ReservationObjects, always_leading
from generator.rpc.forwarded_calls import ForwardedCalls
from generator.rpc.published_state import PublishedState
from generator.rpc.reservation_service import ReservationServicer
from generator.rpc.server import PlacementServer, ServerSecurity
from generator.server.endpoints import Endpoints
from generator.server.history_backup import PERIOD_S, BackupStore, HistoryBackup
from generator.server.loop import LoopConfig, ReconcileLoop, read_cluster_state
from generator.server.replica import Replica
from generator.server.settings import ServerSettings, SwitchPollSettings
from generator.store.fabric_store import FabricStore
from generator.store.folder_lock import FolderLock
from generator.store.folder_store import FolderStore
from generator.store.object_files import write_whole_file
from generator.switches.poller import SwitchPoller
from runtime.clock import SteadyTime, utc_now
from runtime.periodic import PeriodicJob

if TYPE_CHECKING:
    from generator.server.page_port import PagePort

log = logging.getLogger(__name__)

SHUTDOWN_S: Final = 10.0
"""The time from the signal to the end; calls and the current round may finish in this time."""
RESERVATION_PERIOD_S: Final = 5.0
"""How often expired reservations are written as expired. Their capacity is free at once."""
WAKE_DELAY_S: Final = 1.0
"""The time from a change to its round, so that one round sees several changes."""


class FolderBackend:
    """A backend in a folder: this process is the only writer, and no change calls `wake`."""

    history: BackupStore | None = None

    def __init__(self, root: Path, nodes: Path | None) -> None:
        """Read the folder.

        Args:
            root: the folder of the store.
            nodes: the inventory file; None: there is none.

        Raises:
            ConfigError: the inventory cannot be read, or another program writes the folder.
            StoreError: the folders of the store, or its reservations, cannot be read or written.
        """
        self._lock = FolderLock(root)
        try:
            objects = FolderStore(root, nodes)
            objects.begin_epoch()
            convert_file(root / FILE_NAME, objects)
            self.store = FabricStore(objects)
            read_cluster_state(self.store)  # raises if a folder cannot be read
            self.publisher: Publisher = FolderPublisher(root, namespace=DEFAULT_NAMESPACE)
            self.reservations = ReservationObjects(objects, always_leading(objects.epoch))
        except BaseException:
            self._lock.release()
            raise

    def is_leader(self) -> bool:
        """Return True: a folder has one writer."""
        return always_leader()

    def advertise(self, address: str) -> None:
        """Do nothing: a folder has no other replicas."""

    def follow(self, wake: Callable[[], None]) -> AbstractContextManager[object]:
        """Return a context that never calls `wake`."""
        return nullcontext(wake)

    def stop_writing(self) -> None:
        """Do nothing: every write to a folder is atomic."""

    def release(self) -> None:
        """Let another program write; nothing would be lost without it."""
        self._lock.release()


Backend: TypeAlias = FolderBackend | Replica
"""The data of a server: a folder, or a cluster that this replica serves."""


class GeneratorServer:
    """A running server: the gRPC port and the periodic jobs."""

    def __init__(self, settings: ServerSettings, backend: Backend, endpoints: Endpoints) -> None:
        """Open the gRPC port and start the periodic jobs.

        Args:
            settings: how to serve.
            backend: the data to serve.
            endpoints: open already; receive the results of rounds and queries.

        Raises:
            ConfigError: an address is in use, or a file cannot be used.
        """
        self._backend = backend
        self._now = SteadyTime(utc_now, time.monotonic)
        self._ready_file = settings.ready_file
        self._switch_poller = (
            _build_poller(settings.switches, backend.store, self._now)
            if settings.switches
            else None
        )
        published = PublishedState(read_occupied=lambda: reservations.snapshot)
        self._reservations = reservations = ReservationLedger(
            backend.reservations,
            now=self._now,
            clock=time.monotonic,
            on_change=published.notify_changed,
        )
        endpoints.add_reservation_metrics(reservations.count_reserved)
        self._endpoints = endpoints
        self._history, self._backup = _open_history(settings, backend, self._now)
        local_calls = ReservationServicer(reservations)
        self._forwarded_calls = _build_forwarded_calls(
            local_calls, reservations, endpoints.security
        )
        self._server = PlacementServer(
            settings.listen,
            published,
            security=endpoints.security,
            on_query=endpoints.on_query,
            call_reservation=(self._forwarded_calls or local_calls).answer,
        )

        self._loop: ReconcileLoop | None = None
        self._page: PagePort | None = None

        def publish(snapshot: Snapshot, pods: Sequence[BoundPod]) -> None:
            reservations.publish(snapshot, pods)
            published.snapshot = snapshot
            if self._page is not None:
                self._page.document.set_pods(pods)
            self._server.set_serving()

        try:
            self._page = self._open_page(published, settings)
            write_settings = WriteSettings(
                DebounceConfig(),
                time.monotonic,
                is_dry_run=settings.is_dry,
                is_leader=backend.is_leader,
            )
            config = LoopConfig(
                period=timedelta(seconds=settings.period_s),
                now=self._now,
                latest=self._now.latest,
                writing=write_settings,
                planes=settings.planes,
                switch_poller=self._switch_poller,
                round_listeners=(
                    *endpoints.round_listeners,
                    published.on_round,
                    *((self._record_round,) if self._history else ()),
                    *((self._page.document.on_round,) if self._page else ()),
                ),
                publisher=backend.publisher,
                known_switches=KnownSwitches(*self._history.read_last()) if self._history else None,
            )
            loop = ReconcileLoop(backend.store, config, publish=publish)
            self._loop = loop
            backend.advertise(self._server.address)
            urls = {"page": self._page.url} if self._page else {}
            urls |= endpoints.urls
            self.addresses: Mapping[str, str] = {**urls, "gRPC": self._server.address}
            """The URLs that a browser opens, and the address of gRPC, by the name of the port."""
            report_address(self._server.address, settings.ready_file, urls)
            self._schedules = self._start_schedules(loop, settings)
        except BaseException:
            self._stop_page()
            self._server.stop(deadline_s=0)
            raise

    def wake(self) -> None:
        """Start a round soon, and look at reservations. Thread-safe."""
        for job in self._schedules[:2]:
            job.wake(WAKE_DELAY_S)

    def stop(self) -> None:
        """Stop everything within `SHUTDOWN_S`; end the process if a round or a call goes on."""
        ends_at = time.monotonic() + SHUTDOWN_S
        if self._switch_poller is not None:
            self._switch_poller.stop()
        if self._ready_file is not None:
            self._ready_file.unlink(missing_ok=True)
        self._backend.stop_writing()
        self._stop_page()
        have_calls_ended = self._server.stop(deadline_s=SHUTDOWN_S / 2)
        if self._forwarded_calls is not None:
            self._forwarded_calls.close()
        ended = [
            job.stop(deadline_s=max(0.0, ends_at - time.monotonic())) for job in self._schedules
        ]
        self._endpoints.stop()
        if all(ended) and have_calls_ended:
            if self._history is not None:
                self._history.close()
            self._backend.release()
            log.info("generator stopped")
            return
        # Every write is atomic, so a round or a call may be interrupted; its thread would keep the
        # interpreter from ending. The lease is not released: it expires.
        log.warning("generator stopped during a round or a call")
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
        if self._backup is not None:
            schedules.append(PeriodicJob(self._backup.tick, period_s=PERIOD_S, now=utc_now))
        return schedules

    def _open_page(self, published: PublishedState, settings: ServerSettings) -> PagePort | None:
        if self._endpoints.web is None:
            return None
        from generator.server.page_port import PagePort, build_page_sources  # noqa: PLC0415 - loads a web server

        where = "--kube" if settings.cluster else f"--store {shlex.quote(str(settings.folder))}"
        sources = build_page_sources(
            lambda: self._loop.find_planes() if self._loop else None,
            lambda: published.snapshot,
            _find_history_file(settings),
            approve_command=f"toponaut approve {where}",
        )
        endpoints = self._endpoints
        tokens = endpoints.security.tokens
        return PagePort(endpoints.web or "", sources, tls=endpoints.tls, tokens=tokens)

    def _stop_page(self) -> None:
        if self._page is not None:
            self._page.stop()

    def _record_round(self, outcome: RoundOutcome) -> None:
        """Add a round to the history, unless it saw nothing."""
        if self._history is not None and not outcome.is_failed:
            self._history.record(outcome.tree, outcome.findings)

    def _poll_switches(self) -> None:
        """Walk switches if this replica is the leader and knows the earlier reports."""
        if (
            self._switch_poller is not None
            and self._backend.is_leader()
            and self._backend.store.objects.is_synced
        ):
            self._switch_poller.tick()


def serve(
    settings: ServerSettings,
    backend: Backend,
    endpoints: Endpoints,
    wait_for_stop: Callable[[], str],
    *,
    on_ready: Callable[[Mapping[str, str]], None],
) -> None:
    """Serve until a signal comes; the endpoints are closed in every case.

    Args:
        settings: how to serve.
        backend: the data to serve.
        endpoints: open already.
        wait_for_stop: blocks until a stop signal; returns its name.
        on_ready: receives the URLs and the address of gRPC by the name of the port, once they are
            bound.

    Raises:
        ConfigError: an address is in use, or a file cannot be used.
    """
    try:
        running = GeneratorServer(settings, backend, endpoints)
    except BaseException:
        endpoints.stop()
        raise
    on_ready(running.addresses)
    with backend.follow(running.wake):
        log.info("generator stopping", extra={"signal": wait_for_stop()})
        running.stop()


def report_address(address: str, ready_file: Path | None, urls: Mapping[str, str]) -> None:
    """Log the bound addresses, and write that of gRPC into the ready file.

    The file appears atomically.

    Args:
        address: the address of gRPC.
        ready_file: None: none is written.
        urls: the URLs that a browser opens, by the name of the port.

    Raises:
        WriteError: the file cannot be written.
    """
    log.info("generator ready", extra={"address": address, **urls})
    if ready_file is not None:
        write_whole_file(ready_file, f"{address}\n")


def _build_forwarded_calls(
    local: ReservationServicer, reservations: ReservationLedger, security: ServerSecurity
) -> ForwardedCalls | None:
    """Return the forwarder of calls to the leader; None without TLS, which a leader requires."""
    if security.certificates is None:
        return None
    return ForwardedCalls(
        local.answer,
        reservations.find_leader,
        security.certificates,
        has_tokens=security.tokens is not None,
    )


def _open_history(
    settings: ServerSettings, backend: Backend, now: Callable[[], datetime]
) -> tuple[HistoryRecorder | None, HistoryBackup | None]:
    """Return the recorder of the history, and its backup; None in a cluster without a file."""
    file = _find_history_file(settings)
    if file is None:
        return None, None
    writer = HistoryWriter(file)
    backup = None
    if backend.history is not None:
        backup = HistoryBackup(file, backend.history, is_leader=backend.is_leader, now=now)
        backup.restore(writer)
    return HistoryRecorder(writer, now), backup


def _find_history_file(settings: ServerSettings) -> Path | None:
    if settings.history is None and settings.cluster is None:
        return settings.folder / history_file.FILE_NAME
    return settings.history


def _build_poller(
    settings: SwitchPollSettings, store: FabricStore, now: Callable[[], datetime]
) -> SwitchPoller:
    from generator.switches.session import SnmpSession  # noqa: PLC0415 - only if switches are walked

    return SwitchPoller(
        settings.config,
        store=store,
        period=timedelta(seconds=settings.period_s),
        deadline=timedelta(seconds=settings.deadline_s),
        now=now,
        clock=time.monotonic,
        open_session=SnmpSession,
    )
