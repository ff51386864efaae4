"""Conflicts of our HyperNodes with foreign ones, and with their own deletion. Pure.

Foreign HyperNodes lack our source label.

The scheduler merges the HyperNodes of every origin into one forest. So Toponaut cannot write a
name that a foreign object has, nor a child that a foreign object lists; only a person may adopt
such an object. A node may be in a foreign HyperNode and in ours, but then the scheduler may use
either of them for the node.

A HyperNode of ours that was deleted and has finalizers may disappear at any time. So no parent
lists it, and its name is free only after that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from generator.outputs.hypernode.model import HyperNode, MemberType
from topology.model.ids import natural_key


class ConflictKind(StrEnum):
    """What a foreign HyperNode has in common with ours."""

    NAME = "name"
    """The HyperNode has the name of a desired one, which is not written."""
    UNREADABLE = "unreadable"
    """It has the name of a desired HyperNode, which is not written, and cannot be read."""
    CHILD = "child"
    """The HyperNode lists one of ours, which gets no second parent and is not deleted."""
    TERMINATING = "terminating"
    """The HyperNode is ours, and was deleted: it is not written before its finalizers are gone."""


class Conflict(NamedTuple):
    """One of our HyperNodes that conflicts with a foreign one, or with its own deletion."""

    name: str
    """The name of our HyperNode."""
    kind: ConflictKind
    foreign: str
    """The name of the other HyperNode."""


def find_conflicts(
    desired: Iterable[HyperNode], observed: Iterable[HyperNode]
) -> tuple[Conflict, ...]:
    """Return the conflicts, in natural order of their names."""
    all_observed = tuple(observed)
    our_names = {hypernode.name for hypernode in desired} | {
        hypernode.name for hypernode in all_observed if hypernode.is_ours
    }
    conflicts: list[Conflict] = []
    for foreign in all_observed:
        if foreign.is_ours:
            continue
        if foreign.name in our_names:
            conflicts.append(Conflict(foreign.name, _find_name_kind(foreign), foreign.name))
        conflicts += [
            Conflict(child, ConflictKind.CHILD, foreign.name)
            for child in foreign.children
            if child in our_names
        ]
    conflicts += [
        Conflict(hypernode.name, ConflictKind.TERMINATING, hypernode.name)
        for hypernode in all_observed
        if hypernode.is_ours and hypernode.is_terminating
    ]
    return tuple(sorted(set(conflicts), key=lambda row: (natural_key(row.name), row)))


def _find_name_kind(foreign: HyperNode) -> ConflictKind:
    return ConflictKind.UNREADABLE if foreign.is_unreadable else ConflictKind.NAME


class Overlap(NamedTuple):
    """A foreign HyperNode that contains, or may contain, nodes of our HyperNodes."""

    foreign: str
    """The name of the foreign HyperNode."""
    nodes: tuple[str, ...]
    """The nodes in natural order; empty if the HyperNode selects by patterns or labels, which are
    not evaluated."""


def find_overlaps(
    desired: Iterable[HyperNode], observed: Iterable[HyperNode]
) -> tuple[Overlap, ...]:
    """Return the overlaps, in natural order of their names.

    Our HyperNodes are still written: the scheduler may use either HyperNode for such a
    node, and a person decides which of the two to delete.
    """
    our_nodes = {node for hypernode in desired for node in hypernode.nodes}
    overlaps = []
    for hypernode in observed:
        shared = our_nodes.intersection(hypernode.nodes)
        may_share = bool(our_nodes) and hypernode.num_inexact_members > 0
        if not hypernode.is_ours and (shared or may_share):
            overlaps.append(Overlap(hypernode.name, tuple(sorted(shared, key=natural_key))))
    return tuple(sorted(overlaps, key=lambda row: natural_key(row.foreign)))


def without_conflicts(
    desired: Sequence[HyperNode], observed: Iterable[HyperNode]
) -> dict[str, HyperNode]:
    """Return by name the desired HyperNodes that can exist beside the observed ones.

    A name in conflict is left out, none of our parents lists a child in conflict, and a HyperNode
    without remaining members is left out too. Cost: O(members).
    """
    conflicts = find_conflicts(desired, observed)
    unlisted = {conflict.name for conflict in conflicts}
    blocked = {conflict.name for conflict in conflicts if conflict.kind is not ConflictKind.CHILD}
    writable: dict[str, HyperNode] = {}
    for hypernode in sorted(desired, key=lambda hypernode: hypernode.tier):
        members = tuple(
            member
            for member in hypernode.members
            if member.type is MemberType.NODE or member.name not in unlisted
        )
        if hypernode.name in blocked or not members:
            unlisted.add(hypernode.name)
        elif len(members) < len(hypernode.members):
            writable[hypernode.name] = replace(hypernode, members=members)
        else:
            writable[hypernode.name] = hypernode
    return writable
