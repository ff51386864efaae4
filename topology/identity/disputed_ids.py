"""Find the ids that a wrong device may claim: a few of half a million, by arrays of hashes.

`dispute_resolution` checks only these ids and decides which device is right. A superfluous
id costs time; a missing id lets a wrong claim pass. The result therefore holds every id that may be
disputed, as a 64-bit hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.identity.claim_facts import (
    NO_SPEAKER,
    ClaimFacts,
    ClaimTable,
    HashRows,
)
from topology.identity.node_names import NodeNames
from topology.model.claims import Key, Origin, strong_key
from topology.model.facts import DeviceKind, Neighbor
from topology.model.ids import Id

HeardName: TypeAlias = tuple[Id, str]
"""An id of a device, and the name under which a neighbor entry describes the device."""
MIN_HOSTS: Final = 2
"""A host's id belongs to a switch if at least this many other nodes hear it and the host hears none
of them."""


def find_disputed_hashes(
    table: ClaimTable, names: NodeNames, heard_names: Iterable[HeardName]
) -> frozenset[int]:
    """Return the hashes of all keys that may be disputed; undisputed keys may be among them.

    These are keys that two devices claim, keys of both a host and a swept switch, keys of a host
    that the host itself hears, keys of a host that two nodes hear, and keys that the inventory
    lists for one node and a sweep, a capture or a neighbor entry describes as another. Cost:
    O(n log n) in ids and neighbors, 1 µs each; 16 bytes each.

    Args:
        table: all claims.
        names: the index that says which node a name means.
        heard_names: the names under which devices are heard.
    """
    keys = table.column(attrgetter("keys"))
    origins = table.origins()
    is_swept = origins == Origin.SWEEP
    is_switch = np.array([facts.kind is DeviceKind.SWITCH for facts in table.facts], np.bool_)
    is_host = np.array([facts.kind is DeviceKind.HOST for facts in table.facts], np.bool_)
    is_node = np.array([facts.node_name is not None for facts in table.facts], np.bool_)
    claimants = _find_claimants(table, is_swept)
    listed = _number_listed(table, origins)
    described = keys.of(_find_descriptions(table, names, origins, listed)).with_rows(
        _find_named(heard_names, names, listed)
    )
    own = keys.where(~is_swept[keys.speakers])
    own = own.where(~own.are_among(table.column(attrgetter("name_keys")).hashes))
    claimed = own.of(claimants)
    heard = table.heard_rows()
    swept_switches = keys.where((is_swept & is_switch)[keys.speakers])
    heard_by_nodes = heard.where(is_node[heard.speakers])
    contested = np.concatenate([heard_by_nodes.find_repeated(), swept_switches.hashes])
    of_hosts = own.where(is_host[own.speakers])
    disputed = [
        claimed.find_repeated(),
        described.find_repeated(),
        of_hosts.where(of_hosts.are_among(contested)).hashes,
        heard.find_common(own) if len(heard.hashes) else heard.hashes,
    ]
    return frozenset(np.concatenate(disputed).tolist())


def _find_claimants(table: ClaimTable, is_swept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return a number for the claimant of each claim; NO_SPEAKER for none, and for sweeps."""
    numbers: dict[str, int] = {}
    claimants = np.full(len(table), NO_SPEAKER)
    for number in np.flatnonzero(~is_swept).tolist():
        claimant = claimant_of(table.facts[number], number)
        if claimant is not None:
            claimants[number] = numbers.setdefault(claimant, len(numbers))
    return claimants


def _number_listed(table: ClaimTable, origins: NDArray[np.uint8]) -> dict[str, int]:
    """Return a number for each listed node."""
    listed: dict[str, int] = {}
    for number in np.flatnonzero(origins == Origin.INVENTORY).tolist():
        claimant = claimant_of(table.facts[number], number)
        if claimant is not None:
            listed.setdefault(claimant, len(listed))
    return listed


def _find_descriptions(
    table: ClaimTable, names: NodeNames, origins: NDArray[np.uint8], listed: Mapping[str, int]
) -> NDArray[np.int64]:
    """Return a number for the listed node that each claim lists, or describes by its name."""
    described = np.full(len(table), NO_SPEAKER)
    if not listed:
        return described
    for number in np.flatnonzero(origins == Origin.INVENTORY).tolist():
        claimant = claimant_of(table.facts[number], number)
        if claimant is not None:
            described[number] = listed[claimant]
    node_by_name: dict[str, int] = {}
    for number in np.flatnonzero(origins >= Origin.CAPTURE).tolist():
        facts = table.facts[number]
        if facts.name and facts.kind is not DeviceKind.SWITCH:
            node = node_by_name.get(facts.name)
            if node is None:
                node = listed.get(names.find(facts.name) or "", NO_SPEAKER)
                node_by_name[facts.name] = node
            described[number] = node
    return described


def _find_named(
    heard_names: Iterable[HeardName], names: NodeNames, listed: Mapping[str, int]
) -> HashRows:
    """Return the keys that are heard under the name of a listed node, with its number."""
    found: list[tuple[int, int]] = []
    for identifier, name in heard_names if listed else ():
        node, key = listed.get(names.find(name) or ""), strong_key(identifier)
        if node is not None and key is not None:
            found.append((hash(key), node))
    columns = np.array(found, np.int64).reshape(len(found), 2)
    return HashRows(columns[:, 0], columns[:, 1])


def is_named_capture(origin: Origin, facts: ClaimFacts) -> bool:
    """Return whether a claim is a person's capture on a device that names itself."""
    return origin is Origin.CAPTURE and bool(facts.name) and facts.kind is not DeviceKind.SWITCH


def claimant_of(facts: ClaimFacts, claim_number: int) -> str | None:
    """Return the claimant's name; None if the claim may be about a node with another claim."""
    if facts.node_name is not None or facts.kind is not DeviceKind.SWITCH:
        return facts.node_name
    return f"{facts.name or 'switch'}\0{claim_number}"


def neighbor_keys(neighbor: Neighbor) -> Iterator[Key]:
    """Yield the strong keys in a neighbor entry."""
    for identifier in (*neighbor.device_ids, *neighbor.port_ids):
        key = strong_key(identifier)
        if key is not None:
            yield key
