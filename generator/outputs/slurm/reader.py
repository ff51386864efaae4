"""Reads topology.conf and topology.yaml back, and finds what stops slurmctld. Pure.

Source: the fatal errors in src/plugins/topology/tree/switch_record.c and block/block_record.c of
Slurm 22.05 to 26.05.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import yaml

from generator.outputs.slurm.units import SlurmBlock, SlurmSwitch, is_other_type, is_slurm_name
from topology.model.errors import show
from topology.model.name_ranges import expand_names

_MAX_PASSES: Final = 20
"""In each, Slurm resolves switches whose children are resolved; then it gives up."""
_MAX_SIZES: Final = 16
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class SlurmTopology(NamedTuple):
    """The units of a file, in its order."""

    switches: tuple[SlurmSwitch, ...] = ()
    blocks: tuple[SlurmBlock, ...] = ()
    sizes: tuple[int, ...] = ()

    def list_nodes_below(self) -> dict[str, frozenset[str]]:
        """Return all nodes below each switch, without those that Slurm cannot resolve."""
        below: dict[str, frozenset[str]] = {}
        for _ in range(_MAX_PASSES):
            for row in self.switches:
                if row.name not in below and all(child in below for child in row.switches):
                    lower = (below[child] for child in row.switches)
                    below[row.name] = frozenset(row.nodes).union(*lower)
        return below


def parse_topology_conf(text: str) -> SlurmTopology:
    """Return the units of a topology.conf of either plugin.

    Raises:
        ValueError: a line has another form.
    """
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    rows = [dict(_split_field(word) for word in line.split(" ")) for line in lines]
    sizes = [row.pop("BlockSizes") for row in rows if "BlockSizes" in row]
    return SlurmTopology(
        tuple(_build_switch(row, "SwitchName", "Switches") for row in rows if "SwitchName" in row),
        tuple(_build_block(row, "BlockName") for row in rows if "BlockName" in row),
        tuple(int(size) for text in sizes for size in text.split(",")),
    )


def parse_topology_yaml(text: str) -> SlurmTopology:
    """Return the units of a topology.yaml with a tree, and with blocks or without.

    Raises:
        ValueError: the file has another form.
    """
    try:
        topologies = yaml.load(text, Loader=_LOADER)  # noqa: S506 - a safe loader
        _require_texts(topologies)
        trees = [row["tree"]["switches"] for row in topologies if "tree" in row]
        layouts = [row["block"] for row in topologies if "block" in row]
        return SlurmTopology(
            tuple(_build_switch(row, "switch", "children") for rows in trees for row in rows),
            tuple(_build_block(row, "block") for layout in layouts for row in layout["blocks"]),
            tuple(size for layout in layouts for size in layout["block_sizes"]),
        )
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error


def find_slurm_problem(topology: SlurmTopology) -> str:
    """Return the first error for which slurmctld does not start; empty if there is none."""
    problems = chain(_find_switch_problems(topology), _find_block_problems(topology))
    return next(problems, "")


def _split_field(word: str) -> tuple[str, str]:
    key, separator, value = word.partition("=")
    if not (key and separator and value):
        raise ValueError(f"'{show(word)}' is no KEY=VALUE")
    return key, value


def _require_texts(value: Any) -> None:  # noqa: ANN401 - a document
    """Require that slurmctld reads every text of a document as a text.

    Raises:
        ValueError: it would read one as a number, a boolean or null.
    """
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            _require_texts(one)
    elif isinstance(value, str) and is_other_type(value):
        raise ValueError(f"Slurm does not read '{show(value)}' as a text")


def _expand(row: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the names in a field, in either capitalization."""
    return expand_names(str(row.get(key, row.get(key.lower(), ""))))


def _build_switch(row: Mapping[str, Any], name: str, below: str) -> SlurmSwitch:
    return SlurmSwitch(str(row[name]), _expand(row, "Nodes"), _expand(row, below))


def _build_block(row: Mapping[str, Any], name: str) -> SlurmBlock:
    return SlurmBlock(str(row[name]), _expand(row, "Nodes"))


def _find_switch_problems(topology: SlurmTopology) -> Iterator[str]:
    switches = topology.switches
    names = [row.name for row in switches]
    children = [child for row in switches for child in row.switches]
    yield from _find_name_problems("switch", names)
    yield from _find_name_problems("node", [node for row in switches for node in row.nodes])
    yield from (f"switch {name} has several parents" for name in _list_repeated(children))
    for row in switches:
        if bool(row.nodes) == bool(row.switches):
            yield f"switch {show(row.name)} needs either nodes or switches"
    for name in sorted({*children} - {*names}):
        yield f"switch {show(name)} is a child without a line of its own"
    for name in sorted({*names} - topology.list_nodes_below().keys()):
        yield f"switch {show(name)} is in a loop, or in a tree of more than {_MAX_PASSES} levels"


def _find_block_problems(topology: SlurmTopology) -> Iterator[str]:
    blocks, sizes = topology.blocks, topology.sizes
    yield from _find_name_problems("block", [row.name for row in blocks])
    yield from _find_name_problems("node", [node for row in blocks for node in row.nodes])
    if bool(blocks) != bool(sizes):
        yield "blocks need sizes, and sizes blocks"
    for row in blocks:
        if len(row.nodes) < sizes[0]:
            yield f"block {show(row.name)} has fewer nodes than the base size {sizes[0]}"
    allowed = [sizes[0] << level for level in range(_MAX_SIZES)] if sizes else []
    if list(sizes) != [size for size in allowed if size in sizes]:
        yield f"block sizes {sizes} are not the base size times powers of two, ascending"


def _find_name_problems(kind: str, names: Sequence[str]) -> Iterator[str]:
    yield from (f"{kind} {show(name)} is there twice" for name in _list_repeated(names))
    for name in names:
        if not is_slurm_name(name):
            yield f"Slurm cannot hold the name of {kind} {show(name)}"


def _list_repeated(names: Iterable[str]) -> list[str]:
    return [name for name, number in Counter(names).items() if number > 1]
