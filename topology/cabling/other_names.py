"""Devices that have one name in the plan and another in the fabric, recognized by their cables.

If a device with another name has the cables of a planned device, the two are one device. The
mistake is in a name, not in the wiring, so no plug has to be moved. A device counts as recognized
if at least two thirds of its planned cables that can be compared are on one seen device, from the
same ports to the same ports. One such cable is not enough: another device may be in its place. A
device that has a namesake in the fabric needs three: two exchanged cables of two hosts are more
likely than two exchanged names.

Some seen devices have none of the cables that the plan gives their name. Their name may be the
mistake, so their cables are no evidence against another device. If such a device is not recognized
either, its name is in doubt, and no plug is moved because of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from topology.cabling.plan_names import PlanPorts, UnknownReason
from topology.model.cabling_plan import PlannedCable
from topology.model.facts import PortName

_MAX_ROUNDS: Final = 16
"""A round compares cables to devices that an earlier one recognized: one or two per tier."""
_MIN_CABLES: Final = 2
_MIN_CABLES_OF_NAMESAKE: Final = 3


class OtherName(NamedTuple):
    """A planned device, and the seen device that has its cables."""

    planned: str
    """The name of the device as the plan spells it first."""
    device: int
    """Number of the device in the fabric."""


class OtherNames(NamedTuple):
    """The names in a plan that do not mean the seen device of this name."""

    found: tuple[OtherName, ...]
    """Sorted by planned name."""
    doubted: tuple[str, ...]
    """Planned devices whose namesake has none of their cables, and no device has them; sorted."""


def find_other_names(
    cables: Sequence[PlannedCable], ports: PlanPorts, peer_by_port: Mapping[int, int]
) -> OtherNames:
    """Return the planned devices that have another name in the fabric, or may have one.

    Deterministic. Cost: O(cables) per tier of switches with other names.

    Args:
        cables: the plan.
        ports: the names in the fabric; only looked up.
        peer_by_port: the observed cables, port to port in both directions.
    """
    search = _NameSearch(ports, peer_by_port)
    search.index_plan(cables)
    for _ in range(_MAX_ROUNDS):
        if not search.recognize_more():
            break
    return OtherNames(
        tuple(
            OtherName(search.spellings[key], device) for key, device in sorted(search.found.items())
        ),
        tuple(search.spellings[key] for key in search.find_doubted()),
    )


class _PlannedEnd(NamedTuple):
    """One end of a planned cable, seen from the device at this end."""

    near: PortName
    far: PortName
    """Both with the keys of the planned devices."""


@dataclass(slots=True)
class _Matches:
    """How the planned cables of one device compare with the observed ones."""

    num_compared: int = 0
    """Cables whose other end is a known port."""
    num_credible: int = 0
    """Those of them that fit, or end at a device that has planned cables of its own."""
    by_device: Counter[int] = field(default_factory=Counter)
    """By seen device: the cables that it has, from the planned ports to the planned ports."""


class _BestMatch(NamedTuple):
    """The seen device that has most cables of a planned device."""

    device: int
    num_cables: int
    is_well_known: bool
    """Whether a third of the planned cables could be compared."""


@dataclass(slots=True)
class _NameSearch:
    ports: PlanPorts
    peer_by_port: Mapping[int, int]
    ends: dict[str, list[_PlannedEnd]] = field(default_factory=lambda: defaultdict(list))
    """By key of a planned device: its cables."""
    spellings: dict[str, str] = field(default_factory=dict)
    """By key: the first spelling in the plan."""
    known: dict[str, int] = field(default_factory=dict)
    """By key: the seen device, by its name or as recognized."""
    found: dict[str, int] = field(default_factory=dict)
    """By key: the seen device of another name."""
    _suspects: set[str] = field(default_factory=set)
    """Keys of planned devices whose namesake has none of their cables so far."""
    _holders: dict[int, str] = field(default_factory=dict)
    """By seen device: the key of the planned device that it is so far."""

    def index_plan(self, cables: Iterable[PlannedCable]) -> None:
        """Index the cables by planned device, and find the devices that have the planned name."""
        for cable in cables:
            a, b = cable.ends
            for near, far in ((a, b), (b, a)):
                key = self.ports.name_key(near.device)
                self.spellings.setdefault(key, near.device)
                far_key = self.ports.name_key(far.device)
                self.ends[key].append(
                    _PlannedEnd(PortName(key, near.port), PortName(far_key, far.port))
                )
        for key, spelling in self.spellings.items():
            device = self.ports.find_device(spelling)
            if not isinstance(device, UnknownReason):
                self.known[key] = device

    def recognize_more(self) -> bool:
        """Recognize devices by their cables to known devices; return whether any is new.

        If two devices that are cabled to each other both qualify, the device with more matching
        cables is recognized, and the other device is compared again.
        """
        self._holders = {device: key for key, device in self.known.items()}
        self._suspects = {key for key in self.known if self._count_others(key)}
        best = self._find_all_best()
        num_claims = Counter(match.device for match in best.values())
        accepted: dict[str, int] = {}
        for key in sorted(best, key=lambda key: (-best[key].num_cables, key)):
            device = best[key].device
            is_beside_accepted = any(end.far.device in accepted for end in self.ends[key])
            if num_claims[device] == 1 and not is_beside_accepted and self._is_free(device, best):
                accepted[key] = device
        for device in accepted.values():
            holder = self._holders.get(device)
            if holder is not None and holder not in accepted:
                del self.known[holder]
        self.known |= accepted
        self.found |= accepted
        return bool(accepted)

    def find_doubted(self) -> list[str]:
        """Return the keys of the planned devices whose name is in doubt, sorted.

        Two exchanged cables are more likely exchanged plugs than exchanged names, unless the
        namesake has no planned port, or most of the planned cables cannot be compared.
        """
        return sorted(key for key in self.known if key not in self.found and self._is_doubted(key))

    def _is_doubted(self, key: str) -> bool:
        num_others = self._count_others(key)
        if not num_others or num_others >= _MIN_CABLES_OF_NAMESAKE:
            return num_others > 0
        device, ends = self.known[key], self.ends[key]
        if all(self.ports.find_seen_port(device, end.near) is None for end in ends):
            return True
        return 3 * self._match(key).num_compared < len(ends)

    def _count_others(self, key: str) -> int:
        """Return how many planned cables of a known device are elsewhere; 0 if one is in place.

        A cable is in place if it connects the planned devices, at any port. If the planned port of
        the known device is empty, the cable is no evidence of another name.
        """
        device, num_others = self.known[key], 0
        for end in self.ends[key]:
            peer = self.known.get(end.far.device)
            port = None if peer is None else self.ports.find_seen_port(peer, end.far)
            far_port = None if port is None else self.peer_by_port.get(port)
            if far_port is None:
                continue
            if self.ports.devices[far_port] == device:
                return 0
            own_port = self.ports.find_seen_port(device, end.near)
            num_others += own_port is None or own_port in self.peer_by_port
        return num_others

    def _is_free(self, device: int, best: Mapping[str, _BestMatch]) -> bool:
        """Return whether a seen device is not the planned device of its own name."""
        holder = self._holders.get(device)
        if holder is None or holder in best:
            return True
        return holder not in self.found and not self._match(holder).by_device[device]

    def _find_all_best(self) -> dict[str, _BestMatch]:
        """Return the best matches; matches with few known peers only if there are no others."""
        best = {
            key: match
            for key in self.ends
            if key not in self.found and (match := self._find_best(key)) is not None
        }
        well_known = {key: match for key, match in best.items() if match.is_well_known}
        return well_known or best

    def _find_best(self, key: str) -> _BestMatch | None:
        """Return the seen device of another name that has most cables of a planned device."""
        matches = self._match(key)
        (device, count), *others = (*matches.by_device.most_common(2), (-1, 0))
        is_unique = others[0][1] < count if others else False
        if not is_unique or 3 * count < 2 * matches.num_credible or device == self.known.get(key):
            return None
        has_namesake = key in self.known or device in self._holders
        if count < (_MIN_CABLES_OF_NAMESAKE if has_namesake else _MIN_CABLES):
            return None
        return _BestMatch(device, count, 3 * matches.num_compared >= len(self.ends[key]))

    def _match(self, key: str) -> _Matches:
        matches = _Matches()
        for end in self.ends[key]:
            peer = self.known.get(end.far.device)
            port = None if peer is None else self.ports.find_seen_port(peer, end.far)
            if port is None:
                continue
            matches.num_compared += 1
            far_port = self.peer_by_port.get(port)
            device = None if far_port is None else self.ports.devices[far_port]
            fits = device is not None and self.ports.find_seen_port(device, end.near) == far_port
            matches.num_credible += fits or end.far.device not in self._suspects
            if device is not None and fits:
                matches.by_device[device] += 1
        return matches
