"""Reads topology.conf and topology.yaml as slurmctld does: the referee of what is rendered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

from generator.outputs.slurm import SlurmBlock, SlurmSwitch, SlurmTopology, is_other_type
from topology.model.errors import show
from topology.model.name_ranges import expand_names

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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
