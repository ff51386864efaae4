"""The options of commands that write into a store: a folder, or a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

import click

from generator.cli.options import combine_options
from generator.kube.access import ClusterAccess
from generator.reconcile.apply import HyperNodeStore
from generator.store.directory import DirectoryStore

cluster_options: Final = combine_options(
    click.option("--kube", is_flag=True, help="Write into a cluster in place of a folder."),
    click.option("--kubeconfig", help="How to reach it, in place of kubectl's files."),
    click.option("--context", help="Of the kubeconfig, in place of the current one."),
)


class ApprovalStore(Protocol):
    """Where people approve plans."""

    def approve(self, plan: str) -> object:
        """Let a plan be carried out although it is held."""
        ...


class PlanStore(HyperNodeStore, ApprovalStore, Protocol):
    """Where a plan is carried out."""

    def consume_approval(self, plan: str) -> object:
        """Take back the approval of a plan that was carried out."""
        ...


@contextmanager
def open_plan_store(store: Path | None, cluster: ClusterAccess | None) -> Iterator[PlanStore]:
    """Yield the one store that is named.

    Raises:
        click.UsageError: none is, or both are.
        ConfigError: there are no credentials for the cluster.
    """
    if (store is None) == (cluster is None):
        raise click.UsageError("name where to write: either --store or --kube")
    if cluster is None:
        yield DirectoryStore(store or Path())
        return
    from generator.store.cluster import open_cluster  # noqa: PLC0415 - heavy, and rarely needed

    with open_cluster(cluster, os.environ) as opened:
        yield opened
