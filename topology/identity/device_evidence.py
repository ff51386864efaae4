"""The words in descriptions of devices, and what contradicts that two are of one device.

Sources describe a device in different words: a file name, a system name with or without a domain, a
chassis id of any subtype, a management address. A shared word only suggests that two descriptions
are of one device; `join.same_devices` decides, by what the ports of their neighbors hear.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from topology.identity.device_resolution import Entity
from topology.identity.node_names import NAME_SUBTYPES, NameKey, NodeNames
from topology.model.claims import Origin
from topology.model.facts import DeviceKind
from topology.model.ids import Id, IdKind, first_label, full_name


def words_of_ids(ids: Iterable[Id], names: NodeNames) -> Iterator[NameKey]:
    """Yield the words in ids that do not join devices by themselves."""
    for identifier in ids:
        is_address = identifier.kind is IdKind.IP or identifier.subtype == "ip"
        is_name = identifier.kind is IdKind.HOSTNAME or identifier.subtype in NAME_SUBTYPES
        if is_address or is_name:
            yield names.key(identifier.value)


def is_swept(entity: Entity) -> bool:
    """Return whether only sweeps describe the device; its GUIDs identify it."""
    return bool(entity.claims) and all(claim.origin is Origin.SWEEP for claim in entity.claims)


def are_different(first: Entity, second: Entity) -> bool:
    """Return whether two descriptions are of different devices, whatever hears them."""
    nodes = {first.node, second.node} - {None}
    kinds = {first.kind, second.kind} - {DeviceKind.UNKNOWN}
    return len(nodes) > 1 or len(kinds) > 1 or _have_other_domains(first.names, second.names)


def _have_other_domains(names: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether two devices have the same first label in different domains."""
    full, other_full = ({full_name(name) for name in row if "." in name} for row in (names, others))
    labels = {first_label(name) for name in full} & {first_label(name) for name in other_full}
    return any(
        {name for name in full if first_label(name) == label}.isdisjoint(other_full)
        for label in labels
    )


def has_contradiction(first: Entity, second: Entity) -> bool:
    """Return whether two descriptions differ where those of one device rarely do.

    A device has one set of node GUIDs, and sends one chassis id of subtype MAC. It has more MACs
    than a source lists. Two sources of one origin are about two devices.
    """
    if first.origins & second.origins:
        return True
    first_ids, second_ids = _single_ids(first.ids), _single_ids(second.ids)
    kinds_of_both = {kind for kind, _ in first_ids} & {kind for kind, _ in second_ids}
    return bool(kinds_of_both - {kind for kind, _ in first_ids & second_ids})


def _single_ids(ids: Iterable[Id]) -> set[tuple[IdKind, str]]:
    return {
        (kind, value)
        for kind, value, subtype in ids
        if kind is IdKind.NODE_GUID or (kind is IdKind.CHASSIS_ID and subtype == "mac")
    }
