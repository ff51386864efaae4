"""The gangs that run on some nodes, for the description of a node, a switch or a domain."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from generator.cli.input_files import MAX_RUNNING_BYTES, read_input, read_running_gangs
from generator.kube.access import ClusterAccess
from generator.objects.pods import parse_gang_pod
from generator.objects.yaml_document import parse_documents
from generator.store.file_kinds import FileKind, expect_kind
from topology.model.errors import ConfigError, ParseError
from topology.model.ids import natural_key

_ENDED: Final = frozenset({"Succeeded", "Failed"})

NodesByGang = Mapping[str, Collection[str]]


def read_gangs(
    pods: str | None, running: Path | None, cluster: ClusterAccess | None
) -> NodesByGang | None:
    """Return the nodes of each gang; None if no source names pods.

    Args:
        pods: a file of pods; `-` is stdin.
        running: a file of running gangs.
        cluster: whose pods are read if no file is given.

    Raises:
        ConfigError: a file cannot be read, or has no pods.
        KubeError: the pods of the cluster cannot be listed.
    """
    if running is not None:
        return {row.gang: {pod.node for pod in row.pods} for row in read_running_gangs(running)}
    if pods is not None:
        source, raw = read_input(pods, MAX_RUNNING_BYTES)
        with expect_kind(Path(pods), FileKind.PODS):
            return _group_by_gang(_parse_pods(raw, source))
    return None if cluster is None else _group_by_gang(_fetch_pods(cluster))


def list_jobs(gangs: NodesByGang, nodes: Collection[str]) -> list[dict[str, Any]]:
    """Return the gangs with pods on some nodes, and on which of them, by name."""
    chosen = frozenset(nodes)
    return [
        {"gang": gang, "nodes": sorted(chosen.intersection(gangs[gang]), key=natural_key)}
        for gang in sorted(gangs, key=natural_key)
        if not chosen.isdisjoint(gangs[gang])
    ]


def _parse_pods(raw: bytes, source: str) -> list[Mapping[str, Any]]:
    documents: list[Mapping[str, Any]] = []
    for document in parse_documents(raw, source=source):
        if isinstance(document, ParseError):
            raise ConfigError(str(document))
        if isinstance(document.value, dict):
            documents.append(document.value)
    if not documents:
        raise ConfigError(f"{source}: expected pods")
    return documents


def _fetch_pods(cluster: ClusterAccess) -> tuple[Mapping[str, Any], ...]:
    from generator.store.cluster import open_cluster  # noqa: PLC0415 - loads the Kubernetes client

    with open_cluster(cluster, os.environ) as store:
        return store.read_pods()


def _group_by_gang(pods: Iterable[Mapping[str, Any]]) -> NodesByGang:
    nodes: dict[str, set[str]] = defaultdict(set)
    for pod in pods:
        status = pod.get("status")
        if isinstance(status, dict) and status.get("phase") in _ENDED:
            continue
        found = parse_gang_pod(pod)
        if found is not None and found.gang:
            nodes[found.gang].add(found.node)
    return nodes
