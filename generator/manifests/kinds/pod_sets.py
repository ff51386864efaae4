"""Sets of equal pods, and the workloads that they make up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NamedTuple

from generator.manifests.fields import Field, FieldTable
from generator.manifests.gang_pods import PODS, GroupPods, MemberPod
from generator.manifests.kinds.unlisted_resources import add_unlisted
from generator.manifests.objects import KubeObject, Manifests
from generator.manifests.pods import parse_pod_fields, parse_priority
from generator.manifests.resource_units import ONE_SLOT
from generator.placement.quantities import count_units, parse_amount, render_quantity
from topology.model.errors import PlacementRequestError

_SCHEDULERS: Final = frozenset(
    {
        "default-scheduler",
        "godel-scheduler",
        "kai-scheduler",
        "koord-scheduler",
        "runai-scheduler",
        "volcano",
    }
)
"""Names of schedulers whose manifests are read."""


class Minimum(NamedTuple):
    """The fewest pods that a field asks for."""

    num_pods: int
    field: Field


@dataclass(frozen=True, slots=True)
class PodSet:
    """Equal pods of one template."""

    name: str
    count: int
    template: Field
    """A pod template, with metadata and spec."""
    replica_size: int | None = None
    """Pods per replica, if the set consists of several replicas."""
    topology: Field | None = None
    """Kueue's topology request for the set, in a Workload object."""
    job_annotations: Field | None = None
    """Annotations of each job of a JobSet."""
    minimum: Minimum | None = None
    """The fewest pods of the set; all by default."""
    added: tuple[Mapping[str, Any], ...] = ()
    """Requests of containers that a controller adds to each pod."""
    joins_later: bool = False
    """Whether the pods start when the others run, so that no gang waits for them."""
    running: tuple[MemberPod, ...] = ()
    """The pods of the set that have a node."""
    is_leading: bool = False
    """Whether the other pods are of no use without all pods of this set, as without a master."""

    @property
    def annotations(self) -> Field:
        """Annotations of each pod."""
        return self.template.get("metadata", "annotations")

    @property
    def labels(self) -> Field:
        """Labels of each pod."""
        return self.template.get("metadata", "labels")

    def render_group(self) -> dict[str, Any]:
        """Return the set as a group of a request, without tiers and without a minimum."""
        if not self.template.get("spec").exists:
            raise PlacementRequestError(self.template.get("spec").title, "is missing")
        row: dict[str, Any] = {"name": self.name, "count": self.count} | parse_pod_row(
            self.template
        )
        for requests in self.added:
            row["request"] = _add_requests(row["request"], requests)
        if not row["request"]:
            self.template.note("has no resource requests and takes one slot")
            row["request"] = dict(ONE_SLOT)
        return row | {PODS: GroupPods(self.template, self.running)}


def cap_minimum(field: Field, minimum: int, total: int, *, what: str = "pods") -> int:
    """Return the minimum of pods or groups, at most as many as the file has."""
    if minimum > total:
        field.note(f"the file has only {total} {what}")
    return min(minimum, total)


def share_minimum(groups: Sequence[dict[str, Any]], minimum: int) -> dict[str, Any]:
    """Return groups that together need this many pods, from any of the groups."""
    if len(groups) == 1:
        return {"groups": [groups[0] | {"min": minimum}]}
    return {"groups": [row | {"min": 0} for row in groups], "min": minimum}


def build_unknown_pods(owner: Field, count: int, name: str = "pods") -> dict[str, Any]:
    """Return the group of pods that the file lacks."""
    owner.note("the file has none of its pods, so their resource requests are unknown")
    return {"name": name, "count": count}


def mark_scheduler(field: Field) -> None:
    """Mark the name of a known scheduler as read; another scheduler may matter."""
    if isinstance(field.value, str) and field.value in _SCHEDULERS:
        field.text()


def parse_pod_row(template: Field) -> dict[str, Any]:
    """Return the fields of a group that equal pods share."""
    mark_scheduler(template.get("spec", "schedulerName"))
    row = parse_pod_fields(template)
    return row | {"request": add_unlisted(template, row["request"])}


def _add_requests(request: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, int | str]:
    total = {name: parse_amount(amount) for name, amount in request.items()}
    for name, amount in added.items():
        total[name] = total.get(name, Decimal(0)) + parse_amount(amount)
    return {name: render_quantity(name, count_units(name, total[name])) for name in sorted(total)}


@dataclass(frozen=True, slots=True)
class Workload:
    """Sets of pods that are placed together."""

    owner: KubeObject
    sets: tuple[PodSet, ...]
    minimum: Minimum | None = None
    """The fewest pods over all sets; all by default."""

    @property
    def priority(self) -> int:
        """The highest priority of its pods."""
        return max((parse_priority(pod_set.template) for pod_set in self.sets), default=0)

    def apply_minimum(self, groups: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Set the minimum of each group; return the minimum of the gang, if it has one."""
        for row, pods in zip(groups, self.sets, strict=True):
            if pods.minimum is not None:
                row["min"] = cap_minimum(pods.minimum.field, pods.minimum.num_pods, pods.count)
        return {} if self.minimum is None else self._apply_total_minimum(self.minimum, groups)

    def _apply_total_minimum(
        self, minimum: Minimum, groups: Sequence[dict[str, Any]]
    ) -> dict[str, Any]:
        """Require all leading pods, and as many others as the minimum needs."""
        total = sum(pods.count for pods in self.sets)
        capped = cap_minimum(minimum.field, minimum.num_pods, total)
        leading = sum(pods.count for pods in self.sets if pods.is_leading)
        others = [row for row, pods in zip(groups, self.sets, strict=True) if not pods.is_leading]
        missing = max(capped - leading, 0)
        for row in others:
            row["min"] = missing if len(others) == 1 else 0
        return {"min": max(capped, leading)}

    def note_unused_minimum(self, why: str) -> None:
        """Say why minimums of this workload have no effect."""
        rows = [self.minimum, *(pods.minimum for pods in self.sets)]
        for minimum in filter(None, rows):
            minimum.field.note(why)


class WorkloadKind(NamedTuple):
    """A kind of workload: how its pods are counted, and which of its fields are without effect."""

    parse_sets: Callable[[KubeObject, Manifests], list[PodSet]]
    fields: FieldTable
    parse_minimum: Callable[[KubeObject], Minimum | None] = lambda _: None
    """Returns the fewest pods over all sets."""
