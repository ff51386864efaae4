"""Rows of a list of nodes that have a name, canonical GUIDs and MACs, and a capacity at most.

One pattern reads such a row, as generated lists have it. `node_entry` decides about a row of any
other form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from generator.objects.node_entry import ListedNode, parse_entry
from generator.objects.yaml_document import refuse_repeated
from generator.placement.cluster.nodes import NodeSpec
from topology.model.ids import is_canonical_guid, is_canonical_mac, parse_node_name
from topology.model.packed_ids import PackedIds

_BLANK: Final = r"[ \t\n\r]*+"


def _compile(pattern: str) -> re.Pattern[str]:
    """Return a pattern in which `~` stands for any blanks of JSON."""
    return re.compile(pattern.replace("~", _BLANK))


_ID: Final = r'\{~"type"~:~"(?:mac|node-guid|port-guid)"~,~"value"~:~"[0-9a-f:]++"~\}'
_ROW: Final = _compile(
    rf'\{{~"name"~:~"([-a-z0-9.]++)"~,~"ids"~:~\[~((?:{_ID}(?:~,~{_ID})*+)?+)~\]'
    r'(?:~,~"capacity"~:~(\{[^{}]*+\}))?+~\}'
)
_WORDS: Final = _compile(r'e"~:~"([^"]++)"')
"""The type and the value of each id; no other key of an id ends so."""


def read_plain_row(text: str, place: int) -> tuple[ListedNode, int] | None:
    """Return the node of the row at a place, and the end of the row; None for any other row.

    Cost: O(length of the row).
    """
    found = _ROW.match(text, place)
    if found is None or parse_node_name(found[1]) is None:
        return None
    capacity = _parse_capacity(found[3] or "{}")
    words = _WORDS.findall(found[2])
    values: dict[str, list[str]] = {"mac": [], "node-guid": [], "port-guid": []}
    for kind, value in zip(words[::2], words[1::2], strict=True):
        values[kind].append(value)
    macs, node_guids, port_guids = values.values()
    is_plain = all(map(is_canonical_mac, macs)) and all(
        map(is_canonical_guid, (*node_guids, *port_guids))
    )
    if capacity is None or not is_plain:
        return None
    name = found[1]
    ids = PackedIds(name, node_guids=node_guids, port_guids=port_guids, macs=macs)
    return ListedNode(name, ids, NodeSpec(name, capacity=capacity)), found.end()


@lru_cache(maxsize=256)
def _parse_capacity(text: str) -> Mapping[str, int] | None:
    """Return the capacity of nodes; None if it has a fault. Most nodes of a list have the same."""
    try:
        row = json.loads(text, object_pairs_hook=refuse_repeated)
    except (ValueError, RecursionError):
        return None
    node = parse_entry({"name": "node", "capacity": row}, ())
    return None if node.problems else node.spec.capacity
