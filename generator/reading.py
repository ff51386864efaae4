"""What the commands that read a fabric do alike: read, observe, and end with the right code."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, NoReturn

import click

from generator.app import Observation, observe
from generator.exits import Exit
from generator.inputs import Inputs, Sources, read_bytes, read_inputs
from generator.outputs.hypernode import HyperNode, tree_of_hypernodes
from generator.printing import print_problems
from generator.store.directory import read_hypernodes
from generator.store.documents import Document, parse_documents
from topology.errors import ConfigError, ParseError, TopologyError, show
from topology.tree import TopologyTree, parse_tree

MAX_TREE_BYTES = 256 << 20


class Read(NamedTuple):
    """An observation, and what of its input was skipped."""

    observation: Observation
    inputs: Inputs
    problems: tuple[ParseError, ...]


def read_observation(
    sources: Sources,
    *,
    names_of_tiers: str | None = None,
    previous: str | TopologyTree | None = None,
) -> Read:
    """Read the sources of a fabric and infer its tree.

    Args:
        sources: where to read from.
        names_of_tiers: comma-separated, bottom-up.
        previous: the last generation's tree, or the file of its document.

    Raises:
        click.UsageError: no source is named.
        TopologyError: nothing usable was read; the problems have been printed.
    """
    if sources.is_empty:
        raise click.UsageError("name a source: --reports, --ibnetdiscover, --lldpcli, --hypernodes")
    if sources.hypernodes:
        return _read_hypernodes(sources.hypernodes)
    last = read_tree(Path(previous)) if isinstance(previous, str) else previous
    inputs = read_inputs(sources)
    observation = observe(
        inputs,
        now=datetime.now(UTC),  # noqa: TID251 - the commands' one clock
        previous=last,
        names_of_tiers=_split(names_of_tiers),
    )
    if observation is None:
        _refuse_nothing(inputs.problems)
    return Read(observation, inputs, inputs.problems)


def _split(names: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",")) if names else ()


def _read_hypernodes(folder: Path) -> Read:
    read = read_hypernodes(folder)
    if not read.hypernodes:
        _refuse_nothing(read.problems)
    tree, problems = tree_of(read.hypernodes)
    return Read(Observation(tree, ()), Inputs(), (*read.problems, *problems))


def tree_of(hypernodes: Sequence[HyperNode]) -> tuple[TopologyTree, list[ParseError]]:
    """Return the tree that HyperNodes describe, and what had to be left out of it."""
    found = tree_of_hypernodes(hypernodes)
    return found.tree, [ParseError(problem, source="HyperNodes") for problem in found.problems]


def _refuse_nothing(problems: Sequence[ParseError]) -> NoReturn:
    print_problems(problems)
    raise TopologyError("nothing usable was read; what is known of the fabric stays as it was")


def read_tree(file: Path) -> TopologyTree:
    """Read a TopologyTree document.

    Raises:
        ConfigError: the file holds none.
    """
    source = show(str(file), 1024)
    raw = read_bytes(file, MAX_TREE_BYTES)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    for found in parse_documents(raw, source=source):
        if isinstance(found, ParseError):
            raise ConfigError(str(found))
        return _tree_in(found, source)
    raise ConfigError(f"{source}: no document in it")


def _tree_in(found: Document, source: str) -> TopologyTree:
    try:
        return parse_tree(found.value if isinstance(found.value, dict) else {})
    except ConfigError as error:
        raise ConfigError(f"{source}:{found.line}: {error}") from error


def finish(ctx: click.Context, problems: Sequence[ParseError]) -> NoReturn:
    """Say what was skipped and end with the code that tells it."""
    print_problems(problems)
    ctx.exit(Exit.SKIPPED if problems else Exit.OK)
