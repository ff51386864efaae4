"""Where devices are: a table of devices with rack and unit, and the labels of nodes. Pure."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import Final

from generator.objects.inventory import Inventory
from topology.findings.work_order import Place
from topology.model.errors import ConfigError, show

MAX_RACK_BYTES: Final = 32 << 20
"""Bytes of a table."""
_NAMES: Final = ("device", "name")
_RACK: Final = "rack"
_UNITS: Final = ("unit", "position", "rack-unit", "u")
"""Columns of a table, and the last part of labels, in any case."""


def find_labelled_places(inventory: Inventory) -> dict[str, Place]:
    """Return the places of the nodes whose labels name a rack."""
    labels = inventory.labels_by_node
    places = {node: _find_place(_shorten(own)) for node, own in labels.items()}
    return {node: place for node, place in places.items() if place.rack}


def _shorten(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels by the last part of their keys: `topology.example.com/rack` is `rack`."""
    return {key.rpartition("/")[2].lower(): value for key, value in labels.items()}


def _find_place(fields: Mapping[str, str]) -> Place:
    unit = next((fields[name] for name in _UNITS if fields.get(name)), "")
    return Place(fields.get(_RACK, "").strip(), unit.strip())


def parse_places(raw: bytes, *, source: str) -> dict[str, Place]:
    """Return the places in a table, by device.

    Raises:
        ConfigError: it is no CSV, or has no column for the device or for the rack.
    """
    lines = raw.decode("utf-8-sig", errors="replace").splitlines()
    try:
        rows = list(csv.reader(lines))
    except csv.Error as error:
        raise ConfigError(f"{source}: {show(str(error))}") from error
    titles = [title.strip().lower() for title in rows[0]] if rows else []
    key = next((name for name in _NAMES if name in titles), None)
    if key is None or _RACK not in titles:
        raise ConfigError(f"{source}: expected CSV with the columns device (or name) and rack")
    places: dict[str, Place] = {}
    for row in rows[1:]:
        fields = dict(zip(titles, row, strict=False))
        places[fields.get(key, "").strip()] = _find_place(fields)
    return places
