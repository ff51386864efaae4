"""Reads the inputs of commands: reports, sweeps, captures, walks, an inventory, planes.

Only this module opens such files. An unusable file is skipped and reported. No usable file at all
is different from an empty fabric.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.ingest.captures import CAPTURES, SWEEPS
from generator.ingest.claims import build_claims
from generator.ingest.inputs import Inputs
from generator.ingest.named_sweepers import EVERY_SWEEPER, NamedSweepers
from generator.ingest.report_findings import derive_refused_report_findings
from generator.ingest.subnets import find_uncovered_subnets
from generator.kube.access import ClusterAccess
from generator.kube.cache import Listing
from generator.objects.inventory import Inventory
from generator.objects.plane_config import MAX_PLANES_BYTES, PlaneChoice, parse_planes
from generator.objects.tree_spec import DEFAULT_TREE_SPEC, TreeSpec, parse_tree_spec
from generator.store.fabric_store import name_reports_as_listed
from generator.store.file_kinds import FileKind, expect_kind
from generator.store.local_files import (
    read_inventory,
    read_whole_file,
)
from generator.store.object_folders import read_reports
from runtime.clock import utc_now
from runtime.progress import NO_PROGRESS, Progress, track
from topology.model.claims import Origin, expand_claims
from topology.model.errors import ConfigError, ParseError
from topology.planes.policy import COMPUTE, PlanePolicy
from topology.reports.fabric_status import FABRIC_KIND, FABRIC_NAME, FabricStatus, parse_fabric
from topology.reports.packed_reports import PackedReport

NO_SOURCE_MESSAGE: Final = f"name a source: --reports, --kube, --{', --'.join(CAPTURES)}"


class Sources(NamedTuple):
    """The sources to read, as given by the options."""

    reports: Path | None = None
    captures: Mapping[str, tuple[Path, ...]] = MappingProxyType({})
    """Files or folders, by the names of `CAPTURES`."""
    hypernodes: Path | None = None
    node_labels: tuple[str, ...] = ()
    """Keys of labels that describe a tree, coarsest first."""
    has_islands: bool = False
    """Whether domains that no label or HyperNode joins share no cable."""
    nodes: Path | None = None
    planes: Path | None = None
    """The planes file."""
    plane: str | None = None
    """The plane of the tree; None: compute."""
    cluster: ClusterAccess | None = None
    """The cluster to read reports, nodes and HyperNodes from."""
    tree_spec: TreeSpec = DEFAULT_TREE_SPEC
    """The settings in the Fabric object of a store; options take precedence."""
    tree_spec_problems: tuple[ParseError, ...] = ()
    """The wrong values in them."""

    @property
    def is_empty(self) -> bool:
        """Whether no source of a fabric was given."""
        has_captures = any(self.captures.values())
        return not (self.reports or has_captures or self.is_tree or self.cluster)

    @property
    def is_tree(self) -> bool:
        """Whether the source is a tree already, without ports and cables."""
        return bool(self.hypernodes or self.node_labels)

    def with_plane(self, plane: str | None) -> Sources:
        """Return the sources with a plane, unless they name one or have no planes."""
        return self if self.is_empty or self.is_tree or self.plane else self._replace(plane=plane)


def read_inputs(
    sources: Sources, *, now: datetime | None = None, progress: Progress = NO_PROGRESS
) -> Inputs:
    """Read all sources of a fabric and the inventory.

    Args:
        sources: the files and folders to read from.
        now: the time, with a time zone; later sweeps are ignored. None: the clock's time.
        progress: shows what is read.

    Raises:
        ConfigError: the inventory or the planes file cannot be read, or the inventory has no
            usable node.
        KubeError: the cluster cannot be read.
        StoreError: a folder cannot be read.
    """
    policies = read_plane_file(sources.planes) if sources.planes else ()
    now = now or utc_now()
    inventory, stored, tree_spec, problems, named, fabric = _read_store(sources, now, progress)
    if sources.planes or sources.plane:
        tree_spec = tree_spec.with_planes(PlaneChoice(policies, sources.plane or COMPUTE))
    if inventory:
        problems += inventory.problems
    inputs = Inputs(
        inventory=inventory,
        planes=tree_spec.planes,
        tier_names=tree_spec.tier_names,
        problems=problems,
        unknown_settings=tree_spec.unknown,
        fabric=fabric,
    )
    if stored is not None:
        listed = frozenset(node.name for node in inventory.nodes) if inventory else frozenset()
        built = build_claims(stored.values, listed, named=named, now=now)
        inputs = replace(
            inputs,
            reports=stored.values,
            claims=built.claims,
            unknown_subnets=built.unknown_subnets,
            findings=(*derive_refused_report_findings(stored.refused), *built.findings),
            doubts=built.doubts,
            problems=(
                *problems,
                *stored.all_problems,
                *built.problems,
                *_find_unlisted_reports(inventory, built.reporters),
            ),
        )
    for name, paths in sources.captures.items():
        for path in track(paths, f"reading {name}", progress):
            claims, skipped = CAPTURES[name](path, progress)
            inputs = replace(
                inputs,
                claims=(*inputs.claims, *claims),
                problems=(*inputs.problems, *skipped),
            )
    if sources.captures.get(SWEEPS):
        swept = (claim for claim in expand_claims(inputs.claims) if claim.origin is Origin.SWEEP)
        unknown = find_uncovered_subnets(inputs.unknown_subnets, inputs.reports, swept)
        inputs = replace(inputs, unknown_subnets=unknown)
    return inputs


class _StoreContents(NamedTuple):
    """The contents of a store: the folder of reports, or the cluster."""

    inventory: Inventory | None
    reports: Listing[PackedReport] | None
    tree_spec: TreeSpec
    problems: tuple[ParseError, ...] = ()
    """Wrong values in the Fabric object."""
    named: NamedSweepers = EVERY_SWEEPER
    """The nodes whose sweeps count."""
    fabric: Mapping[str, Any] | None = None
    """The Fabric object of a cluster."""


def _read_store(sources: Sources, now: datetime, progress: Progress) -> _StoreContents:
    """Return the inventory and the reports of files or of the cluster; None if not requested."""
    if sources.cluster is None:
        reports = (
            read_reports(sources.reports, now=now, progress=progress) if sources.reports else None
        )
        named = NamedSweepers(listed=sources.tree_spec.sweepers)
        inventory = read_inventory(sources.nodes)
        reports = name_reports_as_listed(reports, inventory) if reports else None
        problems = sources.tree_spec_problems
        return _StoreContents(inventory, reports, sources.tree_spec, problems, named)
    from generator.store.cluster_store import open_cluster  # noqa: PLC0415 - heavy and rarely needed

    progress.show("reading the cluster")
    with open_cluster(sources.cluster, os.environ) as store:
        inventory = read_inventory(sources.nodes) or store.objects.read_nodes()
        if inventory is None or not inventory.nodes:
            raise ConfigError("the cluster has no usable node")
        document = store.read_fabric()
        tree_spec, problems = parse_tree_spec(document)
        try:
            status = parse_fabric(document) if document else FabricStatus()
        except ConfigError as error:
            status = FabricStatus()
            problems += (ParseError(str(error), source=f"{FABRIC_KIND} {FABRIC_NAME}"),)
        named = NamedSweepers(status, tree_spec.sweepers, has_agent_tokens=True)
        reports = store.read_reports()
        return _StoreContents(inventory, reports, tree_spec, problems, named, document)


def read_nodes(sources: Sources) -> Inventory:
    """Return the nodes of the file, or of the cluster.

    Raises:
        ConfigError: the file cannot be read, or there is no usable node.
        KubeError: the cluster cannot be read.
    """
    inventory = read_inventory(sources.nodes)
    if inventory is None and sources.cluster is not None:
        from generator.store.cluster_store import open_cluster  # noqa: PLC0415 - heavy and rarely needed

        with open_cluster(sources.cluster, os.environ) as store:
            inventory = store.objects.read_nodes()
    if inventory is None or not inventory.nodes:
        raise ConfigError("there is no usable node")
    return inventory


def _find_unlisted_reports(
    inventory: Inventory | None, reporters: Iterable[str]
) -> Iterator[ParseError]:
    """Yield a problem per report of a node that is not in the inventory."""
    listed = {node.name for node in inventory.nodes} if inventory else set(reporters)
    for name in sorted(set(reporters) - listed):
        problem = "no such node in the inventory: its cables count, but it is not placed"
        yield ParseError(problem, source=f"report {name}")


def read_plane_file(file: Path) -> tuple[PlanePolicy, ...]:
    """Return the rules of a file of planes.

    Raises:
        ConfigError: the file cannot be read, or its content is wrong.
    """
    raw = read_whole_file(file, MAX_PLANES_BYTES)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    with expect_kind(file, FileKind.PLANES):
        return parse_planes(raw, source=str(file))
