"""The tier that a manifest names: every name under which the tree may know it.

Nothing is guessed from the words of a name. Only the tree knows the names of its tiers, and the
tree may be on a server. So the request has the name itself, then the tiers that the user or the
file give it, and the first of these that the tree knows counts (`TreeLevels.height_of`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from generator.manifests.fields import Field
from generator.outputs.formats import DEFAULT_PREFIX
from generator.placement.cluster.levels import AT_MOST, CLUSTER_TIER, EACH, NODE_TIER, SEPARATOR
from topology.model.ids import HOSTNAME_LABEL

_FIXED_TIERS: Final = {
    HOSTNAME_LABEL: NODE_TIER,
    "NodeTopologyLayer": NODE_TIER,
    "ClusterTopologyLayer": CLUSTER_TIER,
}
_LAYER = re.compile(r"((?:[A-Z0-9][a-z0-9]*)+)Layer\Z")
_CAMEL_CASE_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class LevelNames:
    """What the user and the topology objects of a file say about the levels that it names."""

    def __init__(self, levels: Mapping[str, str] | None = None) -> None:
        """Start with the tiers that the user gives to names."""
        self._given = dict(levels or {})
        self._listed: dict[str, tuple[str, ...]] = {}

    def add_levels(self, coarse_to_fine: Iterable[Sequence[str]]) -> None:
        """Add the levels of a topology object, each with all of its names.

        The lowest is tier 1 for a tree that knows none of its names; a level of nodes is skipped.
        """
        above = [names for names in coarse_to_fine if not _FIXED_TIERS.keys() & set(names)]
        for tier, names in enumerate(reversed(above), 1):
            for name in names:
                self._listed[name] = (*names, str(tier))

    def find_tier(self, field: Field) -> str:
        """Return the tier that a field names, as a request names it; empty if it names none."""
        name = field.text().strip()
        if not name:
            return ""
        if SEPARATOR in name or EACH in name or name.startswith(AT_MOST):
            raise field.build_error("expected the name of a level")
        fixed = self._given.get(name) or _FIXED_TIERS.get(name)
        if name in _FIXED_TIERS and fixed:
            return fixed
        names = [name, self._given.get(name), _find_own_tier(name), *self._listed.get(name, ())]
        if name in self._listed and name not in self._given:
            tier = self._listed[name][-1]
            field.note(f"is tier {tier} by the levels of this file, if the tree has no such name")
        # Only an API that counts tiers means a number: a label key may have digits alone.
        spelled = [_spell(row) if row == name else row for row in names if row]
        return SEPARATOR.join(dict.fromkeys(spelled))


def _spell(name: str) -> str:
    return f"label {name}" if name.isdecimal() else name


def _find_own_tier(name: str) -> str:
    """Return the tier that has this name in Toponaut's outputs; empty if none has it."""
    if name.startswith(f"{DEFAULT_PREFIX}/"):
        return name.removeprefix(f"{DEFAULT_PREFIX}/")
    layer = _LAYER.match(name)
    return _CAMEL_CASE_BOUNDARY.sub("-", layer[1]).lower() if layer else ""


def render_highest_tier(number: int) -> str:
    """Return the tier of an upper bound that counts as Volcano's HyperNodes do."""
    return f"{AT_MOST}{number}"


def build_bounds(required: str, preferred: Sequence[str] = ()) -> dict[str, Any]:
    """Return the tiers of a group or of a gang as fields of a request; empty ones are left out."""
    wanted = [*filter(None, preferred)]
    return ({"required": required} if required else {}) | ({"preferred": wanted} if wanted else {})


def join_tiers(tiers: Sequence[str]) -> str:
    """Return the tier that satisfies each of several bounds: the lowest of them in the tree."""
    return NODE_TIER if NODE_TIER in tiers else EACH.join(dict.fromkeys(tiers))
