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
from generator.manifests.ignored_fields import Relevance, IgnoredField, classify_ignored
from generator.manifests.objects import Manifests, read_objects
from generator.manifests.tier_names import LevelNames
from generator.manifests.workloads import find_workload, group_pods
from topology.model.errors import PlacementRequestError, show
from topology.model.tree import API_VERSION

KIND: Final = "PlacementRequest"


class ManifestFormat(NamedTuple):
    """A system whose manifests are understood."""

    name: str
    is_present: Callable[[Manifests], bool]
    parse_spec: Callable[[Manifests], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Translation:
    """What a file asks for, in our words."""

    system: str
    document: dict[str, Any]
    """A PlacementRequest."""
    ignored: tuple[IgnoredField, ...]
    """Fields without effect; those that may matter first."""
    notes: tuple[Note, ...]
    """What was taken for something else than it says."""
    uses_whole_nodes: bool = False
    """Whether a slot stands for a whole node."""


FORMATS: Final = (
    ManifestFormat("Volcano", volcano.is_present, volcano.parse_spec),
    ManifestFormat("Gödel", godel.is_present, godel.parse_spec),
    ManifestFormat("Koordinator", koordinator.is_present, koordinator.parse_spec),
    ManifestFormat("KAI", kai.is_present, kai.parse_spec),
    ManifestFormat("Kueue", kueue.is_present, kueue.parse_spec),
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
    manifests = read_objects(list(documents), LevelNames(levels))
    system = next((one for one in FORMATS if one.is_present(manifests)), _PLAIN_FORMAT)
    spec = system.parse_spec(manifests)
    _check_kinds(manifests)
    paths = [path for one in manifests.objects for path in one.field.find_unread()]
    return Translation(
        system.name, _render_request(spec), classify_ignored(paths), _collect_notes(manifests)
    )


def _collect_notes(manifests: Manifests) -> tuple[Note, ...]:
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
    spec, unused, notes = sbatch.parse_options(options)
    ignored = [
        IgnoredField(
            show(one), Relevance.NONE if one in sbatch.IGNORABLE_OPTIONS else Relevance.POSSIBLE
        )
        for one in unused
    ]
    ordered = sorted(ignored, key=lambda row: row.relevance is Relevance.NONE)
    return Translation(
        "Slurm", _render_request(spec), tuple(ordered), tuple(notes), uses_whole_nodes=True
    )


def _render_request(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": KIND, "spec": dict(spec)}


def _parse_plain(manifests: Manifests) -> dict[str, Any]:
    """Return a workload or pods that say nothing of topology."""
    workload = find_workload(manifests)
    if workload is not None:
        groups = [one.render_group() for one in workload.sets]
        return {"gang": workload.owner.name, "priority": workload.priority, "groups": groups}
    if not manifests.pods:
        kinds = ", ".join(sorted({one.kind for one in manifests.objects})) or "no object"
        problem = f"expected a workload, a PodGroup or pods, got {show(kinds)}"
        raise PlacementRequestError("the file", problem)
    sets = group_pods(manifests.pods, lambda _: "")
    return {"gang": manifests.pods[0].name, "groups": [one.render_group() for one in sets]}


_PLAIN_FORMAT: Final = ManifestFormat("Kubernetes", lambda _: True, _parse_plain)


def _check_kinds(manifests: Manifests) -> None:
    """Note objects of kinds that nobody looked at, so that they are not taken for understood."""
    for one in manifests.objects:
        if (one.group, one.kind) in _UNRELATED_KINDS:
            one.field.raw()


_UNRELATED_KINDS: Final = frozenset(
    {("", kind) for kind in ("Service", "ConfigMap", "Secret", "Namespace", "ServiceAccount")}
)
"""Objects that often stand beside a workload, and say nothing of places."""
