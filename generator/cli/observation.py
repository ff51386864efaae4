"""What the commands that read a fabric do alike: read, observe, and end with the right code."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import click

from generator.cli.exit_codes import ExitCode
from generator.cli.output import print_problems
from generator.ingest.inputs import Inputs
from generator.ingest.sources import NO_SOURCE_MESSAGE, Sources, read_inputs
from generator.objects.yaml_document import parse_document
from generator.observe.observation import Observation, observe
from generator.outputs.hypernode import HyperNode, build_hypernode_tree
from generator.store.directory import read_hypernodes
from generator.store.local_files import read_whole_file, read_inventory
from runtime.clock import utc_now
from topology.model.claims import expand_claims
from topology.model.errors import ConfigError, ParseError, TopologyError, show
from topology.model.facts import DeviceKind
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree, parse_tree
from topology.planes.policy import COMPUTE

MAX_TREE_BYTES = 256 << 20
_FORWARDING: Final = frozenset({DeviceKind.SWITCH, DeviceKind.ROUTER, DeviceKind.AGGREGATION})


class LoadedObservation(NamedTuple):
    """An observation, and what of its input was skipped."""

    observation: Observation
    inputs: Inputs
    problems: tuple[ParseError, ...]


def read_observation(
    sources: Sources,
    *,
    names_of_tiers: str | None = None,
    previous: str | TopologyTree | None = None,
) -> LoadedObservation:
    """Read the sources of a fabric and infer its tree.

    Args:
        sources: where to read from.
        names_of_tiers: comma-separated, bottom-up.
        previous: the last generation's tree, or the file of its document.

    Raises:
        click.UsageError: no source is named, or an option that HyperNodes leave no room for.
        ConfigError: the names of tiers, the previous tree, the inventory or the plane are no use.
        TopologyError: nothing usable was read; the problems have been printed.
    """
    if sources.is_empty:
        raise click.UsageError(NO_SOURCE_MESSAGE)
    if sources.hypernodes:
        if names_of_tiers or isinstance(previous, str):
            raise click.UsageError("--hypernodes brings its names: no --tier-names, no --previous")
        return _read_hypernodes(sources.hypernodes, sources.nodes)
    last = read_tree(Path(previous)) if isinstance(previous, str) else previous
    inputs = read_inputs(sources)
    observation = observe(
        inputs,
        now=utc_now(),
        previous=last,
        names_of_tiers=_parse_tier_names(names_of_tiers) or inputs.tier_names,
    )
    if observation is None:
        exit_without_data(inputs.problems or [_build_no_data_problem(sources)])
    check_plane(inputs.planes.plane_name, observation.planes)
    return LoadedObservation(observation, inputs, inputs.problems)


def _build_no_data_problem(sources: Sources) -> ParseError:
    """Return what is wrong with sources in which there is nothing bad, and nothing good."""
    where = show(str(sources.reports), 1024) if sources.reports else "the cluster"
    return ParseError("no report is there", source=where)


def check_plane(name: str, planes: Sequence[str]) -> None:
    """Refuse a network that no port is in, but the one that is always asked for."""
    if name not in {COMPUTE, *planes}:
        known = ", ".join(planes) or "none"
        raise ConfigError(f"--plane: no port is in '{show(name)}'; planes with ports: {known}")


def _parse_tier_names(names: str | None) -> tuple[str, ...]:
    """Return the names of a comma-separated list; a number is a tier already, so it names none."""
    found = tuple(name.strip() for name in names.split(",")) if names else ()
    wrong = next((name for name in found if not name or name.isdecimal()), None)
    if wrong is not None:
        what = f"'{show(wrong)}' is a number" if wrong else "one of them is empty"
        raise ConfigError(f"--tier-names: {what}; expected names such as leaf,spine,core")
    return found


def _read_hypernodes(folder: Path, nodes: Path | None) -> LoadedObservation:
    inventory = read_inventory(nodes)
    read = read_hypernodes(folder)
    tree, problems = derive_hypernode_tree(read.hypernodes)
    found = (*(inventory.problems if inventory else ()), *read.problems, *problems)
    if not tree.domains:
        nothing = ParseError("no HyperNode is there", source=show(str(folder), 1024))
        exit_without_data(found or [nothing])
    if inventory:
        tree = _restrict_to_listed(tree, {node.name for node in inventory.nodes})
    return LoadedObservation(
        Observation(tree, ()), Inputs(inventory=inventory, problems=found), found
    )


def _restrict_to_listed(tree: TopologyTree, listed: Collection[str]) -> TopologyTree:
    """Return the tree of the listed nodes; those that it lacks are unplaced."""
    specs = [
        DomainSpec(
            name=domain.name,
            tier=domain.tier,
            parent=None if domain.parent is None else tree.domains[domain.parent].name,
            nodes=tuple(node for node in domain.nodes if node in listed),
        )
        for domain in tree.domains
        if any(node in listed for node in tree.nodes_of(domain))
    ]
    reasons = {gone.node: gone.reason for gone in tree.unplaced}
    unplaced = [
        Unplaced(node, reasons.get(node, "in no HyperNode"))
        for node in set(listed) - set(tree.nodes)
    ]
    return build_tree(specs, tiers=tree.tiers, plane=tree.plane, unplaced=unplaced)


def derive_hypernode_tree(hypernodes: Sequence[HyperNode]) -> tuple[TopologyTree, list[ParseError]]:
    """Return the tree that HyperNodes describe, and what had to be left out of it."""
    found = build_hypernode_tree(hypernodes)
    return found.tree, [ParseError(problem, source="HyperNodes") for problem in found.problems]


def exit_without_data(problems: Sequence[ParseError]) -> NoReturn:
    """Say what was skipped, and that nothing is left.

    Raises:
        TopologyError: always.
    """
    print_problems(problems)
    raise TopologyError("nothing usable was read; what is known of the fabric stays as it was")


def refuse_without_hosts(read: LoadedObservation) -> None:
    """Refuse a fabric in which no host was found: nothing could be placed in its tree.

    Raises:
        TopologyError: there is none; the problems have been printed.
    """
    tree = read.observation.tree
    if not (tree.nodes or tree.unplaced or _has_hosts(read.inputs)):
        no_host = "no host was found: it tells switches and routers alone"
        exit_without_data([*read.problems, ParseError(no_host, source="the fabric")])


def _has_hosts(inputs: Inputs) -> bool:
    """Return whether anything in it is, or may be, a host, though perhaps of no known name."""
    devices = [claim.device for claim in expand_claims(inputs.claims)]
    heard = (near.kind for one in devices for port in one.ports for near in port.neighbors)
    return not _FORWARDING.issuperset(chain((one.kind for one in devices), heard))


def read_tree(file: Path) -> TopologyTree:
    """Read a TopologyTree document.

    Raises:
        ConfigError: the file holds none.
    """
    source = show(str(file), 1024)
    raw = read_whole_file(file, MAX_TREE_BYTES)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    found = parse_document(raw, source=source)
    try:
        return parse_tree(found.value if isinstance(found.value, dict) else {})
    except ConfigError as error:
        raise ConfigError(f"{source}:{found.line}: {show(str(error), 400)}") from error


def exit_with_problems(
    ctx: click.Context, problems: Sequence[ParseError], code: ExitCode | None = None
) -> NoReturn:
    """Say what was skipped and end with the code given, else with the one that tells it."""
    print_problems(problems)
    ctx.exit(code or (ExitCode.SKIPPED if problems else ExitCode.OK))
