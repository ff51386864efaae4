"""The placement request of a file of another system, and the fields that had no effect on it.

The system is detected by API group, kind and annotations. A file may contain several documents and
Lists; together they describe one gang: a PodGroup, its pods, the system's topology object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.manifests import (
    godel,
    grove,
    kai,
    koordinator,
    kubernetes,
    kueue,
    sbatch,
    volcano,
)
from generator.manifests.exclusive_topology import add_exclusive_tiers
from generator.manifests.fields import ROOT, Note
from generator.manifests.gang_pods.pod_affinity import add_pod_affinity
from generator.manifests.gang_pods.running_pods import RunningRow, split_gang, walk_leaves
from generator.manifests.ignored_fields import IgnoredField, classify_ignored
from generator.manifests.objects import Manifests, read_objects
from generator.manifests.tier_names import LevelNames
from generator.manifests.workloads import find_workload, group_pods
from topology.model.errors import PlacementRequestError, show
from topology.model.tree import API_VERSION

KIND: Final = "PlacementRequest"


class ManifestFormat(NamedTuple):
    """A system whose manifests can be translated."""

    name: str
    is_present: Callable[[Manifests], bool]
    parse_spec: Callable[[Manifests], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Translation:
    """The placement request of a file."""

    system: str
    document: dict[str, Any]
    """A PlacementRequest."""
    ignored: tuple[IgnoredField, ...]
    """Fields without effect; fields that may matter come first."""
    notes: tuple[Note, ...]
    """Fields that were interpreted, with the interpretation."""
    uses_whole_nodes: bool = False
    """Whether a slot means a whole node."""
    running: tuple[RunningRow, ...] = ()
    """The pods of the file that run; the request is for the others."""


FORMATS: Final = (
    ManifestFormat("Volcano", volcano.is_present, volcano.parse_spec),
    ManifestFormat("Gödel", godel.is_present, godel.parse_spec),
    ManifestFormat("Koordinator", koordinator.is_present, koordinator.parse_spec),
    ManifestFormat("Grove", grove.is_present, grove.parse_spec),
    ManifestFormat("KAI", kai.is_present, kai.parse_spec),
    ManifestFormat("Kubernetes", kubernetes.is_present, kubernetes.parse_spec),
    ManifestFormat("Kueue", kueue.is_present, kueue.parse_spec),
)
"""In the order of detection: a Kueue queue may be set on the manifests of any other system."""


def translate(
    documents: Sequence[tuple[int, object]], *, levels: Mapping[str, str] = MappingProxyType({})
) -> Translation:
    """Return the placement request of Kubernetes objects.

    Args:
        documents: (1-based line, decoded document), in the order of the file.
        levels: tiers by the level names of the system.

    Raises:
        PlacementRequestError: there is no gang, or several, or a required field is malformed; names
            the document and the path.
    """
    manifests = read_objects(list(documents), LevelNames(levels))
    format_ = next((format_ for format_ in FORMATS if format_.is_present(manifests)), _PLAIN_FORMAT)
    _require_pods(manifests)
    spec = format_.parse_spec(manifests)
    add_pod_affinity(list(walk_leaves(spec["groups"])), manifests.levels)
    spec, running = split_gang(spec, manifests)
    _check_kinds(manifests)
    paths = [path for format_ in manifests.objects for path in format_.field.find_unread()]
    return Translation(
        format_.name,
        _render_request(spec),
        classify_ignored(paths),
        _collect_notes(manifests),
        running=running,
    )


def _require_pods(manifests: Manifests) -> None:
    """Refuse pods that have all ended, unless a workload creates others."""
    pods = manifests.select("Pod", group="")
    if pods and not manifests.pods and find_workload(manifests) is None:
        problem = f"no pod waits for a node: {len(pods)} have ended or are being deleted"
        raise PlacementRequestError(pods[0].title, problem)


def _collect_notes(manifests: Manifests) -> tuple[Note, ...]:
    """Return the notes on all objects; equal notes, for example on pods, only once."""
    notes: dict[tuple[str, str], Note] = {}
    for object_ in manifests.objects:
        for note in object_.field.notes:
            notes.setdefault((note.path.partition(ROOT)[2], note.text), note)
    return tuple(notes.values())


def translate_sbatch(options: Sequence[str], notes: Sequence[Note] = ()) -> Translation:
    """Return the placement request of sbatch options.

    Args:
        options: the words of the command line.
        notes: on the script that they are from.

    Raises:
        PlacementRequestError: an option is malformed; names it.
    """
    parsed = sbatch.parse_options(options)
    return Translation(
        "Slurm",
        _render_request(parsed.spec),
        parsed.ignored,
        (*parsed.notes, *notes),
        uses_whole_nodes=True,
    )


def _render_request(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": KIND, "spec": dict(spec)}


def _parse_plain(manifests: Manifests) -> dict[str, Any]:
    """Return the spec of a workload or of pods without topology settings."""
    workload = find_workload(manifests)
    if workload is not None:
        groups = [pod_set.render_group() for pod_set in workload.sets]
        spec = {"gang": workload.owner.name, "priority": workload.priority, "groups": groups}
        return add_exclusive_tiers(spec, workload, manifests.levels)
    if not manifests.pods:
        kinds = ", ".join(sorted({pod_set.kind for pod_set in manifests.objects})) or "no object"
        problem = f"expected a workload, a PodGroup or pods, got {show(kinds)}"
        raise PlacementRequestError("the file", problem)
    sets = group_pods(manifests.pods, lambda _: "")
    return {"gang": manifests.pods[0].name, "groups": [pod_set.render_group() for pod_set in sets]}


_PLAIN_FORMAT: Final = ManifestFormat("Kubernetes", lambda _: True, _parse_plain)


def _check_kinds(manifests: Manifests) -> None:
    """Mark objects of unrelated kinds as read; any other unread object is reported as ignored."""
    for object_ in manifests.objects:
        if (object_.group, object_.kind) in _UNRELATED_KINDS:
            object_.field.raw()


_UNRELATED_KINDS: Final = frozenset(
    {("", kind) for kind in ("Service", "ConfigMap", "Secret", "Namespace", "ServiceAccount")}
)
"""Objects that often accompany a workload and do not affect placement."""
