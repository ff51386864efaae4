"""The placement request of a file of another system, and the fields that had no effect on it.

The system is detected by API group, kind and annotations. A file may contain several documents and
Lists; together they describe one gang: a PodGroup, its pods, the system's topology object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.manifests import (
    godel,
    grove,
    kai,
    koordinator,
    kubernetes,
    kueue,
    volcano,
)
from generator.manifests.fields import (
    ROOT,
    FieldTable,
    IgnoredField,
    Note,
    Relevance,
    collect_ignored,
    find_ignored,
    render_warning,
)
from generator.manifests.gang_pods import RunningRow, split_gang, walk_leaves
from generator.manifests.kinds.job_sets import add_exclusive_tiers
from generator.manifests.kinds.object_fields import COMPANIONS, METADATA, POD, STATUS
from generator.manifests.kinds.trainer import GROUP as TRAINER
from generator.manifests.kinds.trainer import RUNTIME, RUNTIMES
from generator.manifests.kinds.unlisted_resources import join_shares
from generator.manifests.objects import KubeObject, Manifests, names_scheduler, read_objects
from generator.manifests.pods import add_pod_affinity
from generator.manifests.slurm.batch_job import BatchJob, name_options
from generator.manifests.slurm.loads import NodeCapacity
from generator.manifests.tier_names import LevelNames
from generator.manifests.workloads import KINDS, describe_missing, find_workload, group_pods
from topology.model.errors import PlacementRequestError
from topology.model.tree import API_VERSION

KIND: Final = "PlacementRequest"


class ManifestFormat(NamedTuple):
    """A system whose manifests can be translated."""

    name: str
    is_present: Callable[[Manifests], bool]
    parse_spec: Callable[[Manifests], dict[str, Any]]
    fields: Mapping[tuple[str, str], FieldTable] = MappingProxyType({})
    """The fields of kinds of its own that are without effect, by API group and kind."""


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
    running: tuple[RunningRow, ...] = ()
    """The pods of the file that run; the request is for the others."""
    job: BatchJob | None = None
    """A job of sbatch: its request depends on the nodes."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What the file or the command line calls fields of the request, where it differs."""

    def with_notes(self, notes: Sequence[Note]) -> Translation:
        """Return a copy with further notes; warnings are ignored fields that may matter."""
        warnings = [render_warning(note) for note in notes if note.is_warning]
        others = [note for note in notes if not note.is_warning]
        return replace(self, ignored=(*warnings, *self.ignored), notes=(*self.notes, *others))


FORMATS: Final = (
    ManifestFormat("Volcano", volcano.is_present, volcano.parse_spec, volcano.FIELDS),
    ManifestFormat("Gödel", godel.is_present, godel.parse_spec, godel.FIELDS),
    ManifestFormat(
        "Koordinator", koordinator.is_present, koordinator.parse_spec, koordinator.FIELDS
    ),
    ManifestFormat("Grove", grove.is_present, grove.parse_spec, grove.FIELDS),
    ManifestFormat("KAI", kai.is_present, kai.parse_spec, kai.FIELDS),
    ManifestFormat("Kubernetes", kubernetes.is_present, kubernetes.parse_spec, kubernetes.FIELDS),
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
    format_ = next((row for row in FORMATS if row.is_present(manifests)), None)
    format_ = format_ or _find_scheduler_format(manifests)
    _require_pods(manifests)
    spec = format_.parse_spec(manifests)
    add_pod_affinity(list(walk_leaves(spec["groups"])), manifests.levels)
    spec, running = split_gang(spec, manifests)
    warning = join_shares(walk_leaves(spec["groups"]))
    notes = _collect_notes(manifests)
    rows = [render_warning(note) for note in notes if note.is_warning]
    if warning:
        rows.append(IgnoredField("the file", Relevance.POSSIBLE, reason=warning))
    rows += [row for object_ in manifests.objects for row in _find_ignored(object_)]
    return Translation(
        format_.name,
        _render_request(spec),
        collect_ignored(rows),
        tuple(note for note in notes if not note.is_warning),
        running=running,
    )


def _require_pods(manifests: Manifests) -> None:
    """Refuse pods that have all ended, unless a workload creates others."""
    pods = manifests.select("Pod", group="")
    if pods and not manifests.pods and find_workload(manifests) is None:
        problem = f"no pod waits for a node: {len(pods)} have ended or are being deleted"
        raise PlacementRequestError(pods[0].title, problem)


def _find_scheduler_format(manifests: Manifests) -> ManifestFormat:
    """Return the format of the scheduler that pods name; the file has no settings of it."""
    documents = [object_.field.value for object_ in manifests.objects]
    for scheduler, name in _SCHEDULERS.items():
        if any(names_scheduler(document, {scheduler}) for document in documents):
            return next(row for row in FORMATS if row.name == name)
    return _PLAIN_FORMAT


def _find_ignored(object_: KubeObject) -> Iterator[IgnoredField]:
    """Yield the fields of an object without effect; in an unknown kind, each may matter."""
    key = (object_.group, object_.kind)
    if key in COMPANIONS:
        yield IgnoredField(object_.title, Relevance.NONE, reason=COMPANIONS[key])
    else:
        yield from find_ignored(object_.field, _FIELDS.get(key, _OBJECT))


def _collect_notes(manifests: Manifests) -> tuple[Note, ...]:
    """Return the notes on all objects; equal notes, for example on pods, only once."""
    notes: dict[tuple[str, str], Note] = {}
    for object_ in manifests.objects:
        for note in object_.field.notes:
            notes.setdefault((note.path.partition(ROOT)[2], note.text), note)
    return tuple(notes.values())


def translate_job(job: BatchJob, capacity: NodeCapacity | None = None) -> Translation:
    """Return the placement request of a job of sbatch.

    Args:
        job: the job.
        capacity: the nodes; None: the request is for any nodes.

    Raises:
        PlacementRequestError: the job names a node that does not exist.
    """
    sized = job.size(capacity)
    return Translation(
        "Slurm",
        _render_request(sized.spec),
        (*sized.ignored, *job.ignored),
        (*job.notes, *sized.notes),
        job=job,
        names=name_options(sized.spec),
    )


def _render_request(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": KIND, "spec": dict(spec)}


def _parse_plain(manifests: Manifests) -> dict[str, Any]:
    """Return the spec of a workload or of pods without topology settings."""
    workload = find_workload(manifests)
    if workload is not None:
        groups = [pod_set.render_group() for pod_set in workload.sets]
        spec = {"gang": workload.owner.name, "priority": workload.priority, "groups": groups}
        minimum = workload.apply_minimum(groups)
        return add_exclusive_tiers(spec | minimum, workload, manifests.levels)
    if not manifests.pods:
        raise describe_missing(manifests, "a workload, a PodGroup or pods")
    sets = group_pods(manifests.pods)
    return {"gang": manifests.pods[0].name, "groups": [pod_set.render_group() for pod_set in sets]}


_PLAIN_FORMAT: Final = ManifestFormat("Kubernetes", lambda _: True, _parse_plain)


_SCHEDULERS: Final[Mapping[str, str]] = {"koord-scheduler": "Koordinator", "volcano": "Volcano"}
"""Names of schedulers, and the systems that read manifests without settings of their own."""
_OBJECT: Final[FieldTable] = {"metadata": METADATA, "status": STATUS}
_FIELDS: Final[Mapping[tuple[str, str], FieldTable]] = {
    ("", "Pod"): POD,
    **{key: kind.fields for key, kind in KINDS.items()},
    **dict.fromkeys(((TRAINER, kind) for kind in RUNTIMES), RUNTIME),
    **{key: table for format_ in FORMATS for key, table in format_.fields.items()},
}
"""The fields without effect of every kind that is read."""
