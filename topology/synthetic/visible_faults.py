"""Which faults are detectable from the symmetry of the fabric.

Decides on the fabric after *all* faults, because one fault can hide another.
"""

from __future__ import annotations

from collections import Counter

from topology.synthetic.faults import DamagedFabric
from topology.synthetic.truth import (
    SwitchUnit,
    count_attachments,
    find_majority,
    is_host_cable,
    unit_of,
)
from topology.synthetic.wiring import Cable, Switch


class SymmetryIndex:
    """A damaged fabric, indexed to compare each device with its peers."""

    def __init__(self, damaged: DamagedFabric) -> None:
        """Index the cables. Cost: O(cables)."""
        self._damaged = damaged
        self._switches = {switch.name: switch for switch in damaged.wiring.switches}
        self._attachments = count_attachments(damaged)
        self._nic_indices = {
            nic.port: index for index, nic in enumerate(damaged.wiring.hosts[0].nics)
        }
        self._leaves_by_rail: dict[tuple[SwitchUnit, int], Counter[str]] = {}
        self._uppers: dict[str, Counter[str]] = {}
        self._lowers: dict[str, Counter[str]] = {}
        for cable in damaged.cables:
            self._index(cable)

    def _index(self, cable: Cable) -> None:
        low, high = cable.low.device, cable.high.device
        if is_host_cable(cable, self._switches):
            rail = (unit_of(self._switches[high]), self._nic_indices[cable.low.port])
            self._leaves_by_rail.setdefault(rail, Counter())[high] += 1
        elif not self._joins_peers(cable):
            self._uppers.setdefault(low, Counter())[high] += 1
            self._lowers.setdefault(high, Counter())[low] += 1

    def _joins_peers(self, cable: Cable) -> bool:
        """Return whether a cable is between switches of one rank."""
        low, high = (self._switches.get(end.device) for end in cable)
        return low is not None and high is not None and low.rank == high.rank

    def shows_misplaced(self, cable: Cable) -> bool:
        """Return whether a present cable visibly leads to the wrong switch.

        It does in three cases: an up-link leads to another unit than most up-links of its unit do;
        a host's cable leads to another unit than most cables of the host do; or a host's cable
        leads to another leaf than the same port of most hosts does. An up-link to another spine of
        its own pod looks like a spare cable there and a lost one elsewhere: symmetry does not say
        which two were exchanged.
        """
        high = self._switches[cable.high.device]
        if self._joins_peers(cable):
            return False
        if not is_host_cable(cable, self._switches):
            low_unit = unit_of(self._switches[cable.low.device])
            usual_unit = find_majority(self._attachments.units[low_unit])
            return usual_unit is not None and usual_unit != unit_of(high)
        usual_unit = find_majority(self._attachments.hosts[cable.low.device])
        if usual_unit is None:
            return False
        return usual_unit != unit_of(high) or self._shows_wrong_rail(cable, high)

    def _shows_wrong_rail(self, cable: Cable, leaf: Switch) -> bool:
        """Return whether most hosts of the group have this port on another leaf."""
        rail = (unit_of(leaf), self._nic_indices[cable.low.port])
        usual = find_majority(self._leaves_by_rail[rail])
        return usual is not None and usual != leaf.name

    def shows_missing(self, cable: Cable) -> bool:
        """Return whether a lost cable is visible from its ends or from their peers.

        A cable between switches of one rank is not: their number follows no pattern.
        """
        low, high = cable.low.device, cable.high.device
        if is_host_cable(cable, self._switches):
            return low not in self._damaged.silent or low in self._attachments.hosts
        if self._joins_peers(cable):
            return False
        ups, downs = self._uppers.get(low, Counter()), self._lowers.get(high, Counter())
        num_present = ups[high]
        sideways = [num for name, num in ups.items() if name != high]
        across = [num for name, num in downs.items() if name != low]
        if not num_present and not (sideways and across):
            return False
        peer_counts = sideways + across
        return 2 * sum(num > num_present for num in peer_counts) > len(peer_counts)

    def shows_lost(self, switch: str) -> bool:
        """Return whether a lost switch is visible.

        It is if a reporting host has a dark port, or if most of the switches that were cabled to it
        have fewer cables in that direction than is usual for their rank.
        """
        lost_switches = self._damaged.lost_switches
        cables = [
            cable
            for cable in self._damaged.wiring.cables
            if switch in _devices(cable) and not self._joins_peers(cable)
        ]
        if any(self._is_dark_report(cable) for cable in cables):
            return True
        below = {cable.low.device for cable in cables if cable.high.device == switch}
        above = {cable.high.device for cable in cables if cable.low.device == switch}
        fewer = [
            *self._find_fewer(below & self._switches.keys() - lost_switches, self._uppers),
            *self._find_fewer(above - lost_switches, self._lowers),
        ]
        return 2 * sum(fewer) > len(fewer)

    def _is_dark_report(self, cable: Cable) -> bool:
        """Return whether a lost cable leaves a dark port in the report of a host."""
        host = cable.low.device
        return is_host_cable(cable, self._switches) and host not in self._damaged.silent

    def _find_fewer(self, names: set[str], towards: dict[str, Counter[str]]) -> list[bool]:
        """Return per switch whether it has fewer cables one way than is usual for its rank."""
        ranks = {self._switches[name].rank for name in names}
        counts = Counter(
            cables.total() for name, cables in towards.items() if self._switches[name].rank in ranks
        )
        usual = max(counts, key=lambda num: (counts[num], num), default=0)
        return [towards.get(name, Counter()).total() < usual for name in sorted(names)]


def _devices(cable: Cable) -> tuple[str, str]:
    return cable.low.device, cable.high.device
