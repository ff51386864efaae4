"""Label all nodes of a large cluster on a real API server: python -m tests.bench.labels.

Prints the seconds, the writes from the audit log, and the writes of a second pass, which must be 0.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from generator.kube.access import ClusterAccess
from generator.kube.resources import NODES
from generator.objects.outputs import Output, OutputType
from generator.reconcile.cluster_outputs import ClusterPublisher
from generator.reconcile.outputs import PublishRequest, publish_once
from generator.simulation.replay.fabrics import build_tree_of_shape
from generator.store.cluster_store import open_objects
from tests.kube.conftest import WRITER, prepare
from tests.lab.api_server import ApiServer, find_assets
from topology.model.tree import TopologyTree

OUTPUTS = (Output(type=OutputType.LABELS),)
_THREADS = 8


@click.command()
@click.option("--shape", default="10x25x40", show_default=True, help="Spines, leaves, nodes.")
def main(shape: str) -> None:
    """Print how long it takes, and what is written."""
    tree = build_tree_of_shape(shape)
    with (
        tempfile.TemporaryDirectory() as folder,
        ApiServer(find_assets("programs"), Path(folder), users=[WRITER]) as api,
    ):
        prepare(api)
        add_nodes(api, tree)
        click.echo(f"{len(tree.nodes)} nodes, {len(tree.tiers)} label keys")
        for text in ("labels of all nodes", "the same again"):
            before = len(api.writes_by(WRITER))
            seconds, state = publish(api, tree)
            codes = Counter(row.code for row in api.writes_by(WRITER)[before:])
            click.echo(f"{text}: {state}, {seconds:.0f} s, writes by status {dict(codes)}")


def add_nodes(api: ApiServer, tree: TopologyTree) -> None:
    """Create the nodes."""
    with ThreadPoolExecutor(_THREADS) as pool:
        create: Callable[[str], object] = lambda name: api.expect(  # noqa: E731 - one request
            "POST", NODES.path(), {"metadata": {"name": name}}
        )
        for _ in pool.map(create, tree.nodes):
            pass


def publish(api: ApiServer, tree: TopologyTree) -> tuple[float, str]:
    """Write the labels as `toponaut apply` does; return the seconds, and the state."""
    access = ClusterAccess(str(api.kubeconfig(WRITER)), None)
    started_s = time.monotonic()
    with open_objects(access, os.environ, on_change=lambda: None) as objects:
        publisher = ClusterPublisher(objects, namespace="default", clock=time.monotonic)
        request = PublishRequest(tree, OUTPUTS)
        outcome = publish_once(publisher, request, clock=time.monotonic, pause=time.sleep)
    (row,) = outcome.rows
    return time.monotonic() - started_s, row.state.value


if __name__ == "__main__":
    main()
