"""The compute network of a machine type: one decision for all its hosts, by the facts about ports.

Slots of one medium, distance to a GPU and usual rate are one kind of port. The choice, in order:

1. InfiniBand and ports with RDMA, if the machine has any, with at least a quarter of the fastest
   rate among them.
2. The kind nearest to the GPUs.
3. InfiniBand, if most hosts have it, and if it has at least a quarter of the greatest total rate.
4. The greatest total rate; a bond counts as one attachment. A kind without any known rate counts
   with the fastest rate, and wins a tie.

Then the cables say where the network ends. Slots of the chosen kind are another network if they
share no switch with the others and divide the hosts into other groups. Ports of another rate or
distance whose cables meet those of the chosen kind belong to it.

Links do not decide which kind is chosen. While the chosen kind has no known link, the network is
unknown. So removing cables never moves the network to other ports.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from topology.model.errors import list_some, show
from topology.model.fabric import UNKNOWN_RATE, rate_or_none
from topology.model.facts import GpuDistance, Medium
from topology.model.ids import natural_key
from topology.planes.machine_types import MachineType
from topology.planes.shared_switches import SharedSwitches

SLOWEST_SHARE: Final = 4
"""A compute port has at least a quarter of the fastest rate of its machine."""
_RANKS: Final = {GpuDistance.SWITCH: 0, GpuDistance.NUMA: 1}
_FAR: Final = len(_RANKS)
_GBIT: Final = 10**9
_MEDIA: Final = {Medium.INFINIBAND: "InfiniBand", Medium.ETHERNET: "Ethernet"}
_MAX_NAMES: Final = 8
_DIGITS: Final = re.compile(r"[0-9]+")


class Doubt(StrEnum):
    """Why another candidate is nearly as good as the chosen one."""

    RATE = "the others have more than half of the total rate"
    INFINIBAND = "the others are InfiniBand, which most hosts have"
    CABLES = "both are of one kind, share no switch, and divide the hosts differently"


class ChoiceReason(StrEnum):
    """Why the chosen ports go before the next candidate; in the order of the rules."""

    NEARER = "they are nearer to a GPU"
    INFINIBAND = "they are InfiniBand, which most hosts have"
    TOTAL_RATE = "their total rate per host is greater"
    UNKNOWN_RATE = "they are down, so their rate may be greater"
    NUMBER = "they are more"
    MEDIUM = "they are InfiniBand"
    NAME = "they are first by name; nothing else differs"


class PortKind(NamedTuple):
    """Slots of a machine type that are alike."""

    columns: tuple[int, ...]
    """Indices of the slots, ascending."""
    medium: Medium
    is_rdma: bool
    distance: GpuDistance | None
    """The shortest."""
    rate_bps: int | None
    """None if no port that is up reports one."""
    num_attachments: int
    """Ports per host; a bond counts as one."""


class ComputeChoice(NamedTuple):
    """The compute network of the hosts of one machine type."""

    machine: MachineType
    chosen: PortKind
    """What decided; `columns` has further slots."""
    columns: frozenset[int]
    """The slots of the compute network."""
    met: frozenset[int]
    """The columns that belong to the network because their cables meet the chosen kind's."""
    apart: frozenset[int]
    """The slots of the chosen kind that are another network."""
    rival: PortKind | None
    """The next candidate; None if the machine has only one."""
    reason: ChoiceReason | None
    """Why the chosen kind goes before the next candidate of its machine; None if there is none."""
    doubt: Doubt | None
    """Why the choice between the two is close; None if it is clear."""

    @property
    def has_link(self) -> bool:
        """Whether a cable of the compute network is known."""
        return bool(self.machine.is_linked[sorted(self.columns)].any())


class _Network(NamedTuple):
    """The part of a kind that is one network, and the rest."""

    columns: frozenset[int]
    apart: frozenset[int] = frozenset()
    close: tuple[int, ...] = ()
    """The slots that are nearly as likely the compute network."""


def choose_compute(machine: MachineType, switches: SharedSwitches) -> ComputeChoice:
    """Return the compute network of a machine type.

    Args:
        machine: a machine type with at least one slot.
        switches: the switches of the fabric.
    """
    kinds = list(_find_kinds(machine))
    candidates = _select_candidates(machine, kinds)
    ranked = _rank(machine, candidates)
    chosen = ranked[0]
    network = _find_network(machine, chosen, switches)
    met = {
        column
        for kind in kinds
        if kind is not chosen and _belongs(machine, kind, chosen, network.columns, switches)
        for column in kind.columns
    }
    others = [kind for kind in ranked[1:] if not met.issuperset(kind.columns)]
    rival, doubt = (
        (_make_kind(machine, network.close), Doubt.CABLES)
        if network.close
        else _find_rival(machine, chosen, others, kinds)
    )
    return ComputeChoice(
        machine=machine,
        chosen=chosen,
        columns=network.columns | met,
        met=frozenset(met),
        apart=network.apart,
        rival=rival,
        reason=_explain_rank(machine, candidates, chosen, others[0]) if others else None,
        doubt=doubt,
    )


def _find_kinds(machine: MachineType) -> Iterator[PortKind]:
    """Yield the kinds of a machine's ports, in the order of their first slots."""
    families: dict[tuple[Medium, bool, GpuDistance | None], list[int]] = defaultdict(list)
    for column, slot in enumerate(machine.slots):
        families[slot.medium, slot.is_rdma, slot.distance].append(column)
    for columns in families.values():
        for group in _split_by_rate(machine, columns):
            yield _make_kind(machine, group)


def _make_kind(machine: MachineType, columns: Sequence[int]) -> PortKind:
    slots = [machine.slots[column] for column in columns]
    fastest = int(machine.rates[list(columns)].max())
    return PortKind(
        columns=tuple(sorted(columns)),
        medium=slots[0].medium,
        is_rdma=slots[0].is_rdma,
        distance=slots[0].distance,
        rate_bps=rate_or_none(fastest),
        num_attachments=machine.count_attachments(columns),
    )


def _split_by_rate(machine: MachineType, columns: Sequence[int]) -> Iterator[list[int]]:
    """Yield the slots of each rate; slots of unknown rate may belong to the fastest.

    An InfiniBand port whose distance to a GPU is unknown may be known only from a sweep, which
    shows HCAs of several rates of one network.
    """
    by_rate: dict[int, list[int]] = defaultdict(list)
    for column in columns:
        by_rate[machine.rates.item(column)].append(column)
    unknown = by_rate.pop(UNKNOWN_RATE, [])
    fastest = max(by_rate, default=UNKNOWN_RATE)
    slot = machine.slots[columns[0]]
    if slot.medium is Medium.INFINIBAND and slot.distance is None and by_rate:
        slower = [rate for rate in by_rate if fastest > rate >= fastest / SLOWEST_SHARE]
        by_rate[fastest] += [column for rate in slower for column in by_rate.pop(rate)]
    known = by_rate.get(fastest, [])
    if unknown and known and _are_same_cards(machine, unknown, known):
        known += unknown
        unknown = []
    yield from by_rate.values()
    if unknown:
        yield unknown


def _are_same_cards(machine: MachineType, unknown: Sequence[int], known: Sequence[int]) -> bool:
    """Return whether slots of unknown rate are most likely the same cards as others.

    Slots of unknown rate have no cable on any host. If they have RDMA, they can be the compute
    network, and the others the front network. So they are the same cards only if they are not more
    than the others and, near a GPU, their names have the same form.
    """
    slot = machine.slots[known[0]]
    if slot.medium is Medium.INFINIBAND or not slot.is_rdma:
        return True
    forms = {_form_of(machine, column) for column in known}
    has_form = all(_form_of(machine, column) in forms for column in unknown)
    return len(unknown) <= len(known) and (has_form or not _is_near(slot.distance))


def _form_of(machine: MachineType, column: int) -> str:
    """Return the name of a slot without its numbers."""
    return _form_of_name(machine.slots[column].name)


@lru_cache(maxsize=4096)
def _form_of_name(name: str) -> str:
    return _DIGITS.sub("", name)


def _select_candidates(machine: MachineType, kinds: Sequence[PortKind]) -> list[PortKind]:
    """Return the kinds that can be compute by themselves.

    Ports that are down on every host, and are near no GPU, are not in use.
    """
    used = [
        kind
        for kind in kinds
        if _is_near(kind.distance) or machine.is_up[:, list(kind.columns)].any()
    ]
    used = used or list(kinds)
    candidates = [kind for kind in used if kind.is_rdma] or used
    fastest = max(kind.rate_bps or 0 for kind in candidates)
    return [
        kind
        for kind in candidates
        if kind.rate_bps is None or kind.rate_bps * SLOWEST_SHARE >= fastest
    ]


def _rank(machine: MachineType, candidates: Sequence[PortKind]) -> list[PortKind]:
    """Return the candidates, the best first."""
    return sorted(candidates, key=_make_order(machine, candidates))


def _explain_rank(
    machine: MachineType, candidates: Sequence[PortKind], chosen: PortKind, other: PortKind
) -> ChoiceReason:
    order = _make_order(machine, candidates)
    pairs = zip(ChoiceReason, order(chosen), order(other), strict=True)
    return next(reason for reason, left, right in pairs if left != right)


def _make_order(
    machine: MachineType, candidates: Sequence[PortKind]
) -> Callable[[PortKind], tuple[object, ...]]:
    """Return the sort key of the candidates, with one entry for each reason."""
    default_bps = max(kind.rate_bps or 1 for kind in candidates)
    nearest = min(map(rank_distance, candidates))
    greatest = max(
        _total_bps(kind, default_bps) for kind in candidates if rank_distance(kind) == nearest
    )

    def order(kind: PortKind) -> tuple[object, ...]:
        total = _total_bps(kind, default_bps)
        is_infiniband = kind.medium is Medium.INFINIBAND
        is_wide = is_infiniband and _is_on_most_hosts(machine, kind)
        return (
            rank_distance(kind),
            not (is_wide and total * SLOWEST_SHARE >= greatest),
            -total,
            kind.rate_bps is not None,
            -kind.num_attachments,
            not is_infiniband,
            [natural_key(machine.slots[column].name) for column in kind.columns],
        )

    return order


def _total_bps(kind: PortKind, default_bps: int) -> int:
    """Return the rate of all attachments of a kind on one host."""
    return kind.num_attachments * (default_bps if kind.rate_bps is None else kind.rate_bps)


def describe_slots(machine: MachineType, columns: Iterable[int]) -> str:
    """Return ports as text: how many, the medium, the rate, the distance to a GPU, the names."""
    columns = sorted(columns)
    slot, rate = machine.slots[columns[0]], int(machine.rates[columns].max())
    speed = "of unknown rate" if rate == UNKNOWN_RATE else f"at {rate / _GBIT:g} Gb/s"
    bond = " in bonds" if machine.count_attachments(columns) < len(columns) else ""
    distance = f", {slot.distance} as a GPU" if slot.distance else ""
    names = sorted((machine.slots[column].name for column in columns), key=natural_key)
    shown = list_some(map(show, names), _MAX_NAMES)
    return f"{len(columns)} {_MEDIA[slot.medium]} {speed}{bond}{distance} ({shown})"


def rank_distance(kind: PortKind) -> int:
    """Return how far a kind is from a GPU, smaller is nearer; an unknown distance is far."""
    return _FAR if kind.distance is None else _RANKS.get(kind.distance, _FAR)


def _is_near(distance: GpuDistance | None) -> bool:
    return distance in _RANKS


def _is_on_most_hosts(machine: MachineType, kind: PortKind) -> bool:
    has_port = machine.is_up[:, list(kind.columns)].any(axis=1)
    return 2 * int(np.count_nonzero(has_port)) > len(machine.is_up)


def _find_network(machine: MachineType, kind: PortKind, switches: SharedSwitches) -> _Network:
    """Return the slots of a kind that are one network.

    The slots are split only if the distance to a GPU is known; otherwise nothing shows which slots
    jobs use. If most slots that are up have no known cable, the linked slots may be in another
    network.
    """
    columns = frozenset(kind.columns)
    linked = [column for column in kind.columns if machine.is_linked[column]]
    if not (_is_near(kind.distance) and linked):
        return _Network(columns)
    silent = [
        column
        for column in kind.columns
        if not machine.is_linked[column] and machine.is_up[:, column].any()
    ]
    if kind.is_rdma and len(silent) > len(linked):
        return _Network(columns - {*linked}, frozenset(linked))
    parts = _split_by_cables(machine, linked, switches)
    if len(parts) < 2:  # noqa: PLR2004 - one part needs no choice
        return _Network(columns)
    sizes = [machine.count_attachments(part) for part in parts]
    is_most = 2 * sizes[0] > sum(sizes) + len(silent)
    is_close = 2 * sizes[1] > sizes[0] or not (is_most or silent)
    close = tuple(parts[1]) if is_close else ()
    if close and not silent:
        apart = frozenset[int]()  # all are known, and may well serve one job together
    elif is_most:
        apart = frozenset(linked).difference(parts[0])
    else:
        apart = frozenset(linked)
    return _Network(columns - apart, apart, close)


def _split_by_cables(
    machine: MachineType, linked: Sequence[int], switches: SharedSwitches
) -> list[list[int]]:
    """Return the networks of linked slots, the one with most attachments first."""
    wiring, _ = machine.wirings
    alike: dict[bytes, list[int]] = defaultdict(list)
    for column in linked:
        alike[wiring[:, column].tobytes()].append(column)
    part_of = {column: part for part in alike.values() for column in part}
    for left, right in combinations(linked, 2):
        if part_of[left] is part_of[right]:
            continue
        is_bond = machine.count_attachments([left, right]) == 1
        if (
            is_bond
            or switches.meet(machine, [left], [right])
            or switches.meet_above(machine, [left], [right])
            or switches.divide_alike(machine, left, right)
        ):
            joined = part_of[left] + part_of[right]
            part_of |= dict.fromkeys(joined, joined)
    parts = {id(part): sorted(part) for part in part_of.values()}
    return sorted(parts.values(), key=lambda part: (-machine.count_attachments(part), part))


def _belongs(
    machine: MachineType,
    kind: PortKind,
    chosen: PortKind,
    network: frozenset[int],
    switches: SharedSwitches,
) -> bool:
    """Return whether another kind belongs to the network of the chosen one by its cables."""
    if (kind.medium, kind.is_rdma) != (chosen.medium, chosen.is_rdma):
        return False
    if kind.rate_bps is None or kind.rate_bps * SLOWEST_SHARE < (chosen.rate_bps or 0):
        return False
    slots = sorted(network)
    if switches.meet(machine, slots, kind.columns):
        return True
    is_equal = kind.rate_bps == chosen.rate_bps and kind.distance is not None
    return is_equal and _are_one_network(machine, slots, kind.columns, switches)


def _are_one_network(
    machine: MachineType, slots: Sequence[int], others: Sequence[int], switches: SharedSwitches
) -> bool:
    """Return whether equal cards are in one network, although a GPU is nearer to the first.

    They are in one network if they are in one fabric. If the others are not fewer, the distance
    proves nothing. Then they are also in one network if they are on rails, or while no cable of
    either is known.
    """
    if switches.meet_above(machine, slots, others):
        return True
    if machine.count_attachments(others) < machine.count_attachments(slots):
        return False
    is_silent = not machine.is_linked[[*slots, *others]].any()
    return is_silent or any(
        switches.divide_alike(machine, slot, other) for slot in slots for other in others
    )


def _find_rival(
    machine: MachineType, chosen: PortKind, others: Sequence[PortKind], kinds: Sequence[PortKind]
) -> tuple[PortKind | None, Doubt | None]:
    """Return the next candidate, and why the choice between the two is close."""
    if chosen.medium is not Medium.INFINIBAND:
        for kind in kinds:
            is_wide = kind.medium is Medium.INFINIBAND and _is_on_most_hosts(machine, kind)
            if is_wide and machine.is_linked[list(kind.columns)].any():
                return kind, Doubt.INFINIBAND
    if not others:
        return None, None
    rival = others[0]
    default_bps = max(kind.rate_bps or 1 for kind in (chosen, rival))
    is_near = rank_distance(rival) == rank_distance(chosen)
    # An active bond carries the rate of all its ports, so here each of them counts.
    totals = [len(kind.columns) * (kind.rate_bps or default_bps) for kind in (rival, chosen)]
    is_close = 2 * totals[0] > totals[1]
    return rival, Doubt.RATE if is_near and is_close else None
