"""A file of another system as a placement request: which system, which request, what is left.

Recognised by API group, kind and annotations. Several documents and Lists are one file; it holds
one gang, with what belongs to it: a PodGroup, its pods, the system's topology object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.manifests import godel, kai, koordinator, kueue, sbatch, volcano
from generator.manifests.fields import ROOT, Note
from generator.manifests.ignored_fields import Bearing, Ignored, judge
from generator.manifests.objects import Manifests, read_objects
from generator.manifests.tier_names import Levels
from generator.manifests.workloads import find_workload, sets_of_pods
from topology.model.errors import PlacementRequestError, show
from topology.model.tree import API_VERSION

KIND: Final = "PlacementRequest"


class System(NamedTuple):
    """A system whose manifests are understood."""

    name: str
    is_mine: Callable[[Manifests], bool]
    read: Callable[[Manifests], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Translation:
    """What a file asks for, in our words."""

    system: str
    document: dict[str, Any]
    """A PlacementRequest."""
    ignored: tuple[Ignored, ...]
    """Fields without effect; those that may matter first."""
    notes: tuple[Note, ...]
    """What was taken for something else than it says."""
    takes_nodes: bool = False
    """Whether a slot stands for a whole node."""


SYSTEMS: Final = (
    System("Volcano", volcano.is_mine, volcano.read),
    System("Gödel", godel.is_mine, godel.read),
    System("Koordinator", koordinator.is_mine, koordinator.read),
    System("KAI", kai.is_mine, kai.read),
    System("Kueue", kueue.is_mine, kueue.read),
)
"""In the order in which they are asked: a Kueue queue may stand on the manifests of any other."""


def translate(
    documents: Sequence[tuple[int, object]], *, levels: Mapping[str, str] = MappingProxyType({})
) -> Translation:
    """Return the request that Kubernetes objects make.

    Args:
        documents: (1-based line, decoded document), in the order of the file.
        levels: tiers by the names that the system has for them.

    Raises:
        PlacementRequestError: there is no gang, or several, or a field that counts is malformed;
            names the document and the path.
    """
    manifests = read_objects(list(documents), Levels(levels))
    system = next((one for one in SYSTEMS if one.is_mine(manifests)), _PLAIN)
    spec = system.read(manifests)
    _check_kinds(manifests)
    paths = [path for one in manifests.objects for path in one.field.unread()]
    return Translation(system.name, _document(spec), judge(paths), _notes(manifests))


def _notes(manifests: Manifests) -> tuple[Note, ...]:
    """Return the remarks on all objects; the same on several, such as pods, once."""
    found: dict[tuple[str, str], Note] = {}
    for one in manifests.objects:
        for note in one.field.notes:
            found.setdefault((note.path.partition(ROOT)[2], note.text), note)
    return tuple(found.values())


def translate_sbatch(options: Sequence[str]) -> Translation:
    """Return the request that options of sbatch make.

    Raises:
        PlacementRequestError: an option is malformed; names it.
    """
    spec, unused, notes = sbatch.read_options(options)
    ignored = [
        Ignored(show(one), Bearing.NONE if one in sbatch.HARMLESS else Bearing.POSSIBLE)
        for one in unused
    ]
    ordered = sorted(ignored, key=lambda row: row.bearing is Bearing.NONE)
    return Translation("Slurm", _document(spec), tuple(ordered), tuple(notes), takes_nodes=True)


def _document(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": KIND, "spec": dict(spec)}


def _plain(manifests: Manifests) -> dict[str, Any]:
    """Return a workload or pods that say nothing of topology."""
    workload = find_workload(manifests)
    if workload is not None:
        groups = [one.row() for one in workload.sets]
        return {"gang": workload.owner.name, "priority": workload.priority, "groups": groups}
    if not manifests.pods:
        kinds = ", ".join(sorted({one.kind for one in manifests.objects})) or "no object"
        problem = f"expected a workload, a PodGroup or pods, got {show(kinds)}"
        raise PlacementRequestError("the file", problem)
    sets = sets_of_pods(manifests.pods, lambda _: "")
    return {"gang": manifests.pods[0].name, "groups": [one.row() for one in sets]}


_PLAIN: Final = System("Kubernetes", lambda _: True, _plain)


def _check_kinds(manifests: Manifests) -> None:
    """Note objects of kinds that nobody looked at, so that they are not taken for understood."""
    for one in manifests.objects:
        if (one.group, one.kind) in _ASIDE:
            one.field.raw()


_ASIDE: Final = frozenset(
    {("", kind) for kind in ("Service", "ConfigMap", "Secret", "Namespace", "ServiceAccount")}
)
"""Objects that often stand beside a workload, and say nothing of places."""
