"""The store that a command writes to, a folder or a cluster, and the history that it reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Protocol

import click

from generator.kube.access import ClusterAccess
from generator.objects.tree_record import TreeRecord
from generator.outputs.hypernode import HyperNode
from generator.publish.folder import FolderPublisher
from generator.publish.kinds import MANAGERS
from generator.publish.request import Publisher
from generator.reconcile.apply import HyperNodeStore
from generator.store.base import StoredHyperNodes, StoredRecord
from generator.store.directory import DirectoryStore
from generator.store.folder_lock import FolderLock
from topology.model.errors import StoreError

if TYPE_CHECKING:
    from generator.history.history_file import Generation, History


class ApprovalStore(Protocol):
    """A store in which people approve plans."""

    def approve(self, plan: str) -> object:
        """Allow the plan of this hash although it is held."""
        ...


class PlanStore(HyperNodeStore, ApprovalStore, Protocol):
    """A store to which a plan is applied."""

    def hold_writes(self, namespace: str) -> AbstractContextManager[None]:
        """Let no server of this namespace write within the context."""
        ...

    def read_hypernodes(self) -> StoredHyperNodes:
        """Return the HyperNodes that exist."""
        ...

    def take_over(self, hypernode: HyperNode, seen: HyperNode) -> bool:
        """Replace a HyperNode of another owner, unless it was changed since it was seen."""
        ...

    def read_record(self) -> StoredRecord:
        """Return the record of what was decided last."""
        ...

    def write_record(self, record: TreeRecord) -> object:
        """Record what was decided, before it is written."""
        ...

    def consume_approval(self, plan: str) -> object:
        """Remove the approval of a plan that was applied."""
        ...


@contextmanager
def open_plan_store(store: Path | None, cluster: ClusterAccess | None) -> Iterator[PlanStore]:
    """Yield the store: the folder or the cluster.

    Raises:
        click.UsageError: neither is given, or both are.
        ConfigError: there are no credentials for the cluster.
    """
    if (store is None) == (cluster is None):
        raise click.UsageError("give the store to write to: either --store or --kube")
    if cluster is None:
        yield DirectoryStore(store or Path())
        return
    from generator.store.command_store import (  # noqa: PLC0415 - loads the Kubernetes client
        open_command_store,
    )

    with open_command_store(cluster, os.environ, on_note=_print_note) as opened:
        yield opened


def _print_note(line: str) -> None:
    click.echo(line, err=True)


@contextmanager
def open_publisher(
    store: Path | None, cluster: ClusterAccess | None, *, namespace: str
) -> Iterator[Publisher]:
    """Yield what writes the outputs other than HyperNodes to the folder or the cluster.

    Raises:
        ConfigError: there are no credentials for the cluster.
    """
    if cluster is None:
        yield FolderPublisher(store or Path(), namespace=namespace)
        return
    from generator.publish.cluster import ClusterPublisher  # noqa: PLC0415 - as `open_plan_store`
    from generator.store.output_objects import open_output_objects  # noqa: PLC0415

    with open_output_objects(cluster, os.environ, managers=MANAGERS) as objects:
        yield ClusterPublisher(objects, namespace=namespace, clock=monotonic)


@contextmanager
def open_given_history(store: Path | None, file: Path | None) -> Iterator[History]:
    """Yield the history of a folder, or that of a file.

    Raises:
        click.UsageError: neither is given, or both are.
        StoreError: there is no history, or it cannot be read.
    """
    if (store is None) == (file is None):
        raise click.UsageError("give the history to read: either --store or --history")
    from generator.history.history_file import FILE_NAME, open_history  # noqa: PLC0415 - loads SQLite

    with open_history(file or (store or Path()) / FILE_NAME) as history:
        yield history


def find_generation_since(history: History, since: datetime) -> Generation:
    """Return the generation of a time.

    Raises:
        StoreError: the history begins later.
    """
    generation = history.find_generation(int(since.timestamp()))
    if generation is None:
        raise StoreError(f"the history begins at {show_time(history.begin_s)}")
    return generation


def show_time(at_s: int) -> str:
    """Return seconds since 1970 as a time in UTC."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%SZ}"


@contextmanager
def hold_folder(store: Path | None) -> Iterator[None]:
    """Hold the right to write a folder.

    In a cluster, `PlanStore.hold_writes` does the same.

    Raises:
        ConfigError: a server or another command writes the folder.
        WriteError: the folder cannot be written.
    """
    lock = FolderLock(store) if store is not None else None
    try:
        yield
    finally:
        if lock is not None:
            lock.release()
