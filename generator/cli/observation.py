"""Steps of every command that reads a fabric: read the sources, infer the tree, exit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from generator.cli.exit_codes import exit_without_data
from generator.cli.options import InputOptions
from generator.cli.output import open_progress, show_count
from generator.ingest.captures import CAPTURES, SWEEPS
from generator.ingest.inputs import Inputs
from generator.ingest.sources import (
    NO_SOURCE_MESSAGE,
    Sources,
    read_inputs,
    read_nodes,
)
from generator.kube.resources import REPORTS
from generator.objects.inventory import Inventory
from generator.objects.topology_levels import parse_topology_levels
from generator.objects.yaml_document import parse_document
from generator.observe.labelled_tree import build_labelled_tree, parse_label_keys
from generator.observe.listed_tree import name_as_listed, restrict_to_listed
from generator.observe.observation import Observation, observe
from generator.observe.unmatched_nodes import derive_unlisted_members
from generator.outputs.hypernode.forest import build_hypernode_tree
from generator.outputs.hypernode.lint import resolve_selectors
from generator.store.file_kinds import FileKind, expect_kind
from generator.store.local_files import read_input, read_inventory
from generator.store.object_folders import read_hypernodes
from runtime.clock import utc_now
from topology.model.claims import expand_claims
from topology.model.errors import ConfigError, ParseError, list_some, show
from topology.model.facts import DeviceKind
from topology.model.tree import (
    TopologyTree,
    find_tier_name_problem,
    parse_tree,
)
from topology.planes.plane_split import PlaneSplit
from topology.planes.policy import COMPUTE

if TYPE_CHECKING:
    from generator.kube.cache import Listing
    from generator.outputs.hypernode.model import HyperNode

MAX_TREE_BYTES = 256 << 20
_MAX_NAMES_SHOWN: Final = 8
_MAX_TOPOLOGY_BYTES: Final = 4 << 20
_FORWARDING: Final = frozenset({DeviceKind.SWITCH, DeviceKind.ROUTER, DeviceKind.AGGREGATION})
_REPORT_FOLDERS: Final = ("reports", REPORTS.plural)
"""The folder of reports in what `toponaut simulate` writes, and in a store."""


def parse_sources(given: InputOptions) -> Sources:
    """Return the sources that the options name.

    Raises:
        click.UsageError: two of the sources exclude each other.
    """
    captures = {name: given.cables.list_paths(name) for name in CAPTURES}
    sources = Sources(
        cluster=given.cluster.find_cluster(),
        reports=given.cables.reports,
        captures=captures | {SWEEPS: (*captures[SWEEPS], *given.files)},
        hypernodes=given.hypernodes,
        node_labels=_parse_label_keys(given.node_labels, given.topology),
        has_islands=given.islands,
        nodes=given.nodes,
        planes=given.planes,
        plane=given.plane,
    )
    if sources.hypernodes and not sources._replace(hypernodes=None).is_empty:
        raise click.UsageError("--hypernodes is already a tree: give no other source")
    if sources.node_labels and not sources._replace(node_labels=(), cluster=None).is_empty:
        raise click.UsageError("--node-labels is already a tree: give no other source")
    if sources.node_labels and not (sources.nodes or sources.cluster):
        raise click.UsageError("--node-labels needs the nodes: give --nodes or --kube")
    if sources.cluster and sources.reports:
        raise click.UsageError("--kube reads the reports of the cluster: give no --reports")
    if sources.is_tree and (sources.planes or sources.plane):
        option = "--hypernodes" if sources.hypernodes else "--node-labels"
        raise click.UsageError(f"{option} is already a tree: give no --planes and no --plane")
    if sources.has_islands and not sources.is_tree:
        raise click.UsageError("--islands is for --hypernodes, --node-labels and --topology")
    return sources


def _parse_label_keys(keys: str | None, topology: Path | None) -> tuple[str, ...]:
    """Return the label keys of an option or of an object, coarsest first.

    Raises:
        click.UsageError: both are given.
        ConfigError: they name no label keys.
    """
    if keys is not None and topology is not None:
        raise click.UsageError("give only one of --node-labels and --topology")
    if topology is not None:
        source, raw = read_input(str(topology), _MAX_TOPOLOGY_BYTES)
        levels = parse_topology_levels(raw, source=source)
        return parse_label_keys(",".join(levels))
    return () if keys is None else parse_label_keys(keys)


class LoadedObservation(NamedTuple):
    """An observation and its inputs."""

    observation: Observation
    inputs: Inputs
    split: PlaneSplit | None = None
    """The cables and their planes; None if the source is a tree."""

    @property
    def problems(self) -> tuple[ParseError, ...]:
        """The input that was skipped."""
        return self.inputs.problems


def _load_tree(
    tree: TopologyTree,
    inventory: Inventory | None,
    problems: Iterable[ParseError],
) -> LoadedObservation:
    """Return a tree that a source holds; problems with the list of nodes come first."""
    listed = inventory.problems if inventory else ()
    inputs = Inputs(inventory=inventory, problems=(*listed, *problems))
    return LoadedObservation(Observation(tree, ()), inputs)


def read_observation(
    sources: Sources,
    *,
    names_of_tiers: str | None = None,
    previous: Path | TopologyTree | None = None,
) -> LoadedObservation:
    """Read the sources of a fabric and infer its tree.

    Args:
        sources: the files and folders, or the cluster, to read from.
        names_of_tiers: names separated by commas, lowest tier first.
        previous: the tree of the last generation, or its file.

    Raises:
        click.UsageError: no source is given, or an option that excludes --hypernodes.
        ConfigError: the tier names, the previous tree, the inventory or the plane are wrong.
        TopologyError: there is no usable input; the problems have been printed.
    """
    if sources.is_empty:
        raise click.UsageError(NO_SOURCE_MESSAGE)
    if sources.hypernodes:
        if names_of_tiers or isinstance(previous, Path):
            raise click.UsageError(
                "--hypernodes has its own names: give no --tier-names and no --previous"
            )
        return _read_hypernodes(sources.hypernodes, sources.nodes, has_islands=sources.has_islands)
    if sources.node_labels:
        if isinstance(previous, Path):
            raise click.UsageError("labels have their own names: give no --previous")
        return read_labelled_nodes(sources, _parse_tier_names(names_of_tiers))
    tier_names = _parse_tier_names(names_of_tiers)
    last_tree = read_tree(previous) if isinstance(previous, Path) else previous
    with open_progress("reading the sources") as progress:
        inputs = read_inputs(sources, progress=progress)
        progress.show("inferring the tree")
        observed = observe(
            inputs,
            now=utc_now(),
            previous=last_tree,
            names_of_tiers=tier_names or inputs.tier_names,
        )
    if observed is None:
        exit_without_data(_explain_no_data(sources, inputs.problems))
    observation = observed.observation
    check_plane(inputs.planes.plane_name, observation.planes)
    _check_number(tier_names, observation.tree)
    return LoadedObservation(observation, inputs, observed.split)


def read_cables(sources: Sources) -> tuple[LoadedObservation, PlaneSplit]:
    """Read sources that have cables.

    Raises:
        click.UsageError: the source is a tree.
        ConfigError: as of `read_observation`.
        TopologyError: as of `read_observation`.
    """
    read = None if sources.is_tree else read_observation(sources)
    if read is None or read.split is None:
        raise click.UsageError("HyperNodes and labels have no cables: give another source")
    return read, read.split


def read_claims(sources: Sources, *, lacking: str) -> Inputs:
    """Read the sources of a fabric without inferring its tree.

    Args:
        sources: the files and folders, or the cluster, to read from.
        lacking: a noun for what a tree, as the source, does not have.

    Raises:
        click.UsageError: no source is given, or one that is a tree.
        TopologyError: there is no usable input; the problems have been printed.
    """
    if sources.is_empty:
        raise click.UsageError(NO_SOURCE_MESSAGE)
    if sources.is_tree:
        raise click.UsageError(f"HyperNodes and labels have no {lacking}: give another source")
    with open_progress("reading the sources") as progress:
        inputs = read_inputs(sources, progress=progress)
    if not inputs.claims:
        exit_without_data(_explain_no_data(sources, inputs.problems))
    return inputs


def _explain_no_data(sources: Sources, problems: Sequence[ParseError]) -> list[ParseError]:
    """Return the problems of sources without any report, with the folder that was meant."""
    folder = sources.reports
    where = show(str(folder), 1024) if folder else "the cluster"
    found = [*problems] or [ParseError("no reports found", source=where)]
    inside = [folder / name for name in _REPORT_FOLDERS] if folder else []
    meant = [show(str(path), 1024) for path in inside if path.is_dir()]
    if meant:
        found.append(ParseError(f"did you mean --reports {meant[0]}?", source=where))
    return found


def check_plane(name: str, planes: Sequence[str]) -> None:
    """Refuse a plane without ports, except compute, the default.

    Raises:
        ConfigError: the plane has no port.
    """
    if name not in {COMPUTE, *planes}:
        known = ", ".join(planes) or "none"
        raise ConfigError(f"--plane: '{show(name)}' has no ports; planes with ports: {known}")


def _parse_tier_names(names: str | None) -> tuple[str, ...]:
    """Return the names of a comma-separated list.

    Raises:
        ConfigError: a name is empty, a number, reserved or listed twice.
    """
    if names is None:
        return ()
    tier_names = tuple(name.strip() for name in names.split(","))
    problem = find_tier_name_problem(tier_names)
    if problem is not None:
        raise ConfigError(f"--tier-names: {problem}; expected names such as leaf,spine,core")
    return tier_names


def _check_number(tier_names: Sequence[str], tree: TopologyTree) -> None:
    """Refuse tier names unless there are as many as tiers.

    Raises:
        ConfigError: the numbers differ.
    """
    if tier_names and tree.tiers and len(tier_names) != len(tree.tiers):
        needed, got = len(tree.tiers), list_some(map(show, tier_names), _MAX_NAMES_SHOWN)
        raise ConfigError(
            f"--tier-names: this tree has {show_count(needed, 'tier')}, lowest first, so give "
            f"{show_count(needed, 'name')}; got {len(tier_names)}: {got}"
        )


def _read_hypernodes(folder: Path, nodes: Path | None, *, has_islands: bool) -> LoadedObservation:
    inventory = read_inventory(nodes)
    loaded = load_hypernodes(
        read_hypernodes(folder), inventory, source=str(folder), has_islands=has_islands
    )
    if inventory is None:
        return loaded
    whole = loaded.observation.tree
    tree = restrict_to_listed(whole, inventory, reason="in no HyperNode")
    findings = tuple(derive_unlisted_members(inventory, whole.nodes, tree))
    return loaded._replace(observation=Observation(tree, findings))


def load_hypernodes(
    stored: Listing[HyperNode],
    inventory: Inventory | None,
    *,
    source: str,
    has_islands: bool = False,
) -> LoadedObservation:
    """Return the tree that HyperNodes describe.

    Args:
        stored: the HyperNodes.
        inventory: the nodes that labels select; None: they select none.
        source: the file or the cluster that the HyperNodes come from.
        has_islands: whether domains that no HyperNode joins share no cable.

    Raises:
        TopologyError: there is no HyperNode; the problems have been printed.
    """
    hypernodes = [row for row in stored.values if not row.is_unreadable]
    if inventory:
        labels = inventory.labels_by_node
        hypernodes = [resolve_selectors(row, labels) for row in hypernodes]
    built = build_hypernode_tree(hypernodes, has_islands=has_islands)
    problems = [ParseError(problem, source="HyperNodes") for problem in built.problems]
    loaded = _load_tree(built.tree, inventory, (*stored.all_problems, *problems))
    if not built.tree.domains:
        no_hypernodes = ParseError("no HyperNodes found", source=show(source, 1024))
        exit_without_data(loaded.problems or [no_hypernodes])
    return loaded


def read_labelled_nodes(sources: Sources, tier_names: Sequence[str] = ()) -> LoadedObservation:
    """Return the tree that the labels of the nodes describe.

    Raises:
        ConfigError: the nodes cannot be read, none has any of the keys, or the names do not fit.
        KubeError: the cluster cannot be read.
    """
    inventory = read_nodes(sources)
    built = build_labelled_tree(
        inventory.labels_by_node,
        sources.node_labels,
        tier_names=tier_names,
        has_islands=sources.has_islands,
    )
    problems = (ParseError(problem, source="labels") for problem in built.problems)
    return _load_tree(built.tree, inventory, problems)


def read_saved_tree(
    file: Path, sources: Sources, *, is_restricted: bool = False
) -> LoadedObservation:
    """Read a TopologyTree. If a list of nodes is given, the nodes have the names of that list.

    Args:
        file: the TopologyTree.
        sources: the other options of the command.
        is_restricted: whether the tree is that of the listed nodes.

    Raises:
        click.UsageError: another source of a tree is given.
        ConfigError: a file cannot be read, or holds no tree.
    """
    if not sources.is_empty:
        raise click.UsageError("--tree is already a tree: give no other source")
    inventory = read_inventory(sources.nodes)
    tree = read_tree(file)
    if inventory:
        tree = name_as_listed(tree, inventory)
    if inventory and is_restricted:
        tree = restrict_to_listed(tree, inventory, reason="not in the TopologyTree")
    return _load_tree(tree, inventory, ())


def refuse_without_hosts(read: LoadedObservation) -> None:
    """Refuse a fabric without hosts: nothing could be placed in its tree.

    Raises:
        TopologyError: there is no host; the problems have been printed.
    """
    tree = read.observation.tree
    if not (tree.nodes or tree.unplaced or _has_hosts(read.inputs)):
        no_hosts = "no hosts found, only switches and routers"
        exit_without_data([*read.problems, ParseError(no_hosts, source="the fabric")])


def _has_hosts(inputs: Inputs) -> bool:
    """Return whether any device or neighbor is or may be a host, with or without a name."""
    devices = [claim.device for claim in expand_claims(inputs.claims)]
    neighbors = (
        neighbor.kind for device in devices for port in device.ports for neighbor in port.neighbors
    )
    return not _FORWARDING.issuperset(chain((device.kind for device in devices), neighbors))


def read_tree(file: Path) -> TopologyTree:
    """Read a TopologyTree document.

    Raises:
        ConfigError: the file holds no tree.
    """
    source, raw = read_input(str(file), MAX_TREE_BYTES)
    with expect_kind(file, FileKind.TREE):
        document = parse_document(raw, source=source)
        try:
            return parse_tree(document.value if isinstance(document.value, dict) else {})
        except ConfigError as error:
            raise ConfigError(f"{source}:{document.line}: {show(str(error), 400)}") from error
