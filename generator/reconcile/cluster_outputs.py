"""Applies the outputs to a cluster: a bounded number of writes a round, and none at rest.

One object that cannot be written stops no other, and one output stops no other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.kube.cache import StoredObject
from generator.kube.resources import NODES, Resource
from generator.objects.document import mapping_at
from generator.outputs import kai, kueue
from generator.reconcile.object_plan import KindPlan, ObjectAction, plan_objects
from generator.reconcile.output_outcomes import OutputOutcome, OutputsOutcome, RefusedWrite
from generator.reconcile.outputs import PublishRequest
from generator.reconcile.rendered import (
    ObjectSet,
    OwnedParts,
    RenderedOutput,
    build_kind,
    build_removal,
    list_tier_keys,
    render_outputs,
)
from generator.reconcile.write_delays import BlockedWrites, WriteKey
from generator.store.cluster_store import ClusterStore
from generator.store.kinds import Kind
from topology.model.errors import (
    KubeConflict,
    KubeError,
    KubeFenced,
    KubeInUse,
    KubeNotFound,
    show,
)


class _User(NamedTuple):
    """A kind whose objects refer to objects of another kind."""

    resource: Resource
    find_name: Callable[[Mapping[str, Any]], object]
    """Returns the name that an object's spec refers to."""


_USERS: Final[Mapping[Resource, _User]] = MappingProxyType(
    {
        kai.TOPOLOGIES: _User(
            kai.POD_GROUPS, lambda spec: mapping_at(spec, "topologyConstraint").get("topology")
        ),
        kueue.TOPOLOGIES: _User(kueue.RESOURCE_FLAVORS, lambda spec: spec.get("topologyName")),
    }
)
_UNCHANGEABLE: Final = 422
"""What a server answers to such a change."""
REPLACEABLE: Final = frozenset(_USERS)
"""The kinds whose objects are deleted and created again if they cannot change."""


def require_unused(objects: ClusterStore, resource: Resource, name: str) -> None:
    """Refuse to replace an object that others name.

    Raises:
        KubeInUse: one of them, which the message names, refers to it.
        KubeError: they cannot be listed.
    """
    user = _USERS[resource]
    for found in objects.list_once(build_kind(user.resource)):
        if user.find_name(mapping_at(found, "spec")) == name:
            shown = show(str(mapping_at(found, "metadata").get("name", "")), 253)
            raise KubeInUse(
                f"its levels cannot change while the {user.resource.kind} {shown} uses it",
                status=_UNCHANGEABLE,
            )


log = logging.getLogger(__name__)

MAX_WRITES: Final = 200
"""Writes of one round: four seconds at the rate of `BULK`, so that a round of HyperNodes
is not late by more."""
_NEXT_ROUND_S: Final = 0.1
"""Until the next round if more is to be written."""
_AFTER_STOP_S: Final = 5.0
"""The same after the server did not answer."""
_INVALID: Final = 422
_DELETION_S: Final = 60.0
"""For how long a deleted object may stay, until others have removed their finalizers."""
_DELETION_PAUSE_S: Final = 1.0
_STATUS_OF_NO_SERVER: Final = frozenset({0, 429, 503, 504})
"""No answer, or one that concerns every write. Any other status is about one object: also 500,
which is the answer to an apply with a field that an older CRD does not have."""


class ClusterPublisher:
    """Keeps the outputs of a cluster up to date. Not thread-safe."""

    def __init__(
        self, objects: ClusterStore, *, namespace: str, clock: Callable[[], float]
    ) -> None:
        """Send no request yet.

        Args:
            objects: the objects of the cluster.
            namespace: the namespace of the objects, except cluster-wide ones.
            clock: monotonic, in seconds.
        """
        self._objects = objects
        self._namespace = namespace
        self._clock = clock
        self._kinds: dict[Resource, Kind[OwnedParts]] = {}
        self._rendered: tuple[object, tuple[RenderedOutput, ...]] | None = None
        self._limits = BlockedWrites()
        self._planned: set[WriteKey] = set()
        """The writes that this round plans."""
        self._num_left = self._num_written = 0
        """Writes that are left, and that were sent, in this round."""
        self._waits_s: list[float] = []
        """Seconds until writes that had to wait in this round may be tried."""
        self._replaced_at_s: dict[WriteKey, float] = {}
        """When objects were deleted that are to be created again."""
        self._next_round_s = _NEXT_ROUND_S

    def update(self, request: PublishRequest) -> OutputsOutcome:
        """Compare the outputs, and write what may be written."""
        self._num_left, self._num_written = (MAX_WRITES if request.is_writing else 0), 0
        self._planned, self._waits_s, self._next_round_s = set(), [], _NEXT_ROUND_S
        outcomes = [self._update_output(row, request) for row in self._render(request)]
        outcomes += [
            self._update_output(build_removal(kind), request)._replace(is_removal=True)
            for kind in request.removed
        ]
        self._limits.keep(self._planned)
        if self._num_written:
            log.info("outputs written", extra={"num_writes": self._num_written})
        keys = () if request.tree is None else list_tier_keys(request.tree, request.outputs)
        return OutputsOutcome(
            tuple(outcomes),
            keys,
            min(self._waits_s, default=None) if request.is_writing else None,
            is_paused=not request.is_writing,
        )

    def _render(self, request: PublishRequest) -> tuple[RenderedOutput, ...]:
        """Return the wanted outputs; they are rendered again only if the tree changed."""
        key = (request.tree, request.outputs)
        if self._rendered is None or self._rendered[0] != key:
            rows = render_outputs(request.tree, request.outputs, namespace=self._namespace)
            self._rendered = key, rows
        return self._rendered[1]

    def _update_output(self, rendered: RenderedOutput, request: PublishRequest) -> OutputOutcome:
        outcome = OutputOutcome(
            rendered.type, problem=rendered.problem, is_known=rendered.is_decided
        )
        for objects in rendered.sets:
            try:
                plan = self._plan(objects, request)
            except KubeNotFound as error:
                return outcome._replace(problem=str(error), is_served=False)
            except KubeError as error:
                return outcome._replace(problem=str(error), is_known=False)
            if outcome.refusals and objects.resource != NODES:  # it names what was refused
                num_pending = outcome.num_pending + len(plan.actions)
                outcome = outcome._replace(num_pending=num_pending)
                continue
            outcome = self._carry_out(objects, plan, outcome)
        return outcome

    def _find_kind(self, resource: Resource) -> Kind[OwnedParts]:
        if resource not in self._kinds:
            self._kinds[resource] = build_kind(resource, namespace=self._namespace)
        return self._kinds[resource]

    def _plan(self, objects: ObjectSet, request: PublishRequest) -> KindPlan:
        """Return the plan for a set of objects.

        Raises:
            KubeError: the existing objects are not known.
        """
        listing = self._objects.read(self._find_kind(objects.resource))
        observed = {row.name: row for row in listing.objects}
        return plan_objects(objects, observed, busy=request.busy, takeover=request.takeover)

    def _carry_out(
        self, objects: ObjectSet, plan: KindPlan, outcome: OutputOutcome
    ) -> OutputOutcome:
        """Write the plan as far as this round may; return the outcome with its result."""
        taken = "exists, and another writer owns it"
        refusals = [RefusedWrite(key, taken, is_conflict=True) for key in plan.taken]
        num_current, num_pending, num_before = plan.num_current, 0, self._num_written
        for action in plan.actions:
            found = self._write(objects, action)
            if isinstance(found, RefusedWrite):
                refusals.append(found)
            elif found:
                num_current += action.desired is not None
            else:
                num_pending += 1
        return outcome._replace(
            num_current=outcome.num_current + num_current,
            num_pending=outcome.num_pending + num_pending,
            num_written=outcome.num_written + self._num_written - num_before,
            deferred=(*outcome.deferred, *plan.deferred),
            refusals=(*outcome.refusals, *refusals),
        )

    def _write(self, objects: ObjectSet, action: ObjectAction) -> bool | RefusedWrite:
        """Write an object; return whether it is written now, or why it cannot be."""
        key = WriteKey(
            self._find_kind(objects.resource).resource.path(), objects.manager, action.key
        )
        part = None if action.desired is None else action.desired.part
        self._planned.add(key)
        now_s = self._clock()
        known = self._limits.find_refusal(key, part, now_s)
        if known is not None:
            return known
        if action.observed is not None and self._is_replaced(key, now_s):
            self._waits_s.append(_DELETION_PAUSE_S)
            return False
        wait_s = self._limits.compute_wait_s(key, part, now_s)
        if wait_s > 0 or self._num_left <= 0:
            self._waits_s.append(max(wait_s, self._next_round_s))
            return False
        self._num_left -= 1
        try:
            self._send(objects, action, key, part)
        except KubeError as error:
            return self._record_failure(key, part, error)
        self._limits.record_write(key, part, now_s)
        self._replaced_at_s.pop(key, None)
        self._num_written += 1
        return True

    def _record_failure(
        self, key: WriteKey, part: str | None, error: KubeError
    ) -> RefusedWrite | bool:
        """Return the refusal of one write, or False if it should be tried again soon."""
        now_s = self._clock()
        if isinstance(error, KubeFenced) or error.status in _STATUS_OF_NO_SERVER:
            log.warning("writing outputs stopped", extra={"error": str(error)})
            self._num_left, self._next_round_s = 0, _AFTER_STOP_S
            self._waits_s.append(_AFTER_STOP_S)
            return False
        if self._is_replaced(key, now_s):
            self._waits_s.append(_DELETION_PAUSE_S)
            return False
        refusal = RefusedWrite(key.name, str(error), isinstance(error, KubeConflict))
        is_in_use = isinstance(error, KubeInUse)
        self._limits.record_refusal(key, part, refusal, now_s, is_in_use=is_in_use)
        log.warning("output refused", extra={"object": key.name, "error": str(error)})
        return refusal

    def _is_replaced(self, key: WriteKey, now_s: float) -> bool:
        """Return whether the object was deleted a moment ago, to be created again."""
        at_s = self._replaced_at_s.get(key)
        return at_s is not None and now_s < at_s + _DELETION_S

    def _send(
        self, objects: ObjectSet, action: ObjectAction, key: WriteKey, part: str | None
    ) -> None:
        """Send one write.

        Raises:
            KubeError: the server refuses it, or does not answer.
        """
        resource, observed = objects.resource, action.observed
        if action.desired is None:
            if resource == NODES:
                self._apply(objects, _render_bare_node(action.key), action, is_forced=True)
            elif observed is not None:
                self._delete(resource, observed)
            return
        document = action.desired.document
        owns_part = observed is not None and objects.manager in observed.value
        is_ours = self._limits.has_written(key) or action.is_takeover or owns_part
        if self._limits.is_in_use(key, part):
            require_unused(self._objects, resource, action.key)
        try:
            self._apply(objects, document, action, is_forced=is_ours)
        except KubeError as error:
            is_immutable = error.status == _INVALID and resource in REPLACEABLE
            if not is_immutable or observed is None:
                raise
            # A field of the object cannot change: delete the object and create it again.
            require_unused(self._objects, resource, action.key)
            self._delete(resource, observed)
            self._replaced_at_s[key] = self._clock()
            self._apply(objects, document, action._replace(observed=None), is_forced=False)

    def _apply(
        self,
        objects: ObjectSet,
        document: Mapping[str, Any],
        action: ObjectAction,
        *,
        is_forced: bool,
    ) -> None:
        seen = action.observed
        self._objects.apply(
            self._find_kind(objects.resource),
            document,
            # Others write such objects all the time: it must be the same object, in any version.
            seen=None if seen is None else seen._replace(version=""),
            manager=objects.manager,
            is_forced=is_forced,
        )

    def _delete(self, resource: Resource, observed: StoredObject[OwnedParts]) -> None:
        self._objects.delete(self._find_kind(resource), observed._replace(version=""))


def _render_bare_node(name: str) -> dict[str, Any]:
    """Return a Node without fields: applying it removes all that the manager owns."""
    return {"kind": "Node", "metadata": {"name": name}}
