"""The store that a command writes to: a folder or a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import monotonic
from typing import Protocol

import click

from generator.kube.access import ClusterAccess
from generator.objects.tree_record import TreeRecord
from generator.outputs.hypernode import HyperNode
from generator.reconcile.folder_outputs import FolderPublisher
from generator.reconcile.kinds import MANAGERS
from generator.reconcile.outputs import Publisher
from generator.reconcile.writer import HyperNodeStore
from generator.store.base import StoredHyperNodes, StoredRecord
from generator.store.directory import DirectoryStore
from generator.store.folder_lock import FolderLock


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
    from generator.reconcile.cluster_outputs import ClusterPublisher  # noqa: PLC0415 - as `open_plan_store`
    from generator.store.output_objects import open_output_objects  # noqa: PLC0415

    with open_output_objects(cluster, os.environ, managers=MANAGERS) as objects:
        yield ClusterPublisher(objects, namespace=namespace, clock=monotonic)


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
