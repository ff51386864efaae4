"""Writes this node's reports to an API server, and reads its own last ones back.

What did not change is not written: a spec when its facts differ, a status when an outcome does or
its time is older than six hours. What the server holds is known from reading it once and from the
answers to our own writes; every ten minutes metadata alone tell whether somebody else changed it.
An agent may not delete, nor list: a part of a sweep that says nothing any more is emptied, and
its parts have numbers without a gap.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from agent.publish.destination import PublishOutcome
from agent.publish.kube.https_client import APPLY, METADATA_ONLY, ApiClient, ApiRequest
from agent.publish.size_limit import MAX_OBJECT_BYTES, fit_report
from runtime.clock import Clock
from runtime.retry import Cooldown, Uniform
from topology.model.errors import (
    KubeConflict,
    KubeError,
    KubeNotFound,
    KubeUnavailable,
    ReportError,
)
from topology.reports.neighbor_report import (
    API_VERSION,
    MAX_PARTS,
    REPORT_KIND,
    NeighborReport,
    ReportStatus,
    SweepPart,
    render_report,
)
from topology.reports.report_objects import is_withdrawn, parse_stored_report, build_withdrawn_part

log = logging.getLogger(__name__)

FIELD_MANAGER: Final = "toponaut-agent"
REPORTS_PATH: Final = f"/apis/{API_VERSION}/neighborreports"
STATUS_AGE_S: Final = 6 * 3600.0
"""A status in which only times differ is renewed no sooner, and within an hour more."""
STATUS_SPREAD_S: Final = 3600.0
CHECK_INTERVAL_S: Final = 600.0
"""So often at most, and within half as much more, it is looked whether our objects are as left."""
WRITE_DEADLINE_S: Final = 20.0
"""What of a large sweep is not written by then waits for the next round."""


@dataclass(frozen=True, slots=True)
class WriteIntervals:
    """How rarely to do what need not be done at once."""

    status_s: float = STATUS_AGE_S
    status_spread_s: float = STATUS_SPREAD_S
    check_s: float = CHECK_INTERVAL_S


@dataclass(slots=True)
class _PublishedReport:
    """What the server holds under one name."""

    spec: str
    """Hash of the facts."""
    comparable_status: str = ""
    """What its status says, but for times and messages; empty where that is not known."""
    status_due_s: float = 0.0
    check_due_s: float = 0.0
    generation: int | None = None
    """The server counts specs by it."""
    owners: frozenset[str] = frozenset()
    """Uids."""
    part: SweepPart | None = None
    """Without its facts; None for a device, and for a part that was withdrawn."""


class ReportWriter:
    """The NeighborReports of one node: `N`, and `N.sweep.<i>` of its sweeps."""

    def __init__(
        self,
        server: ApiClient,
        node_name: str,
        clock: Clock,
        uniform: Uniform,
        *,
        cooldown: Cooldown,
        intervals: WriteIntervals | None = None,
    ) -> None:
        """Ask nothing yet.

        Args:
            server: where they are.
            node_name: a checked one, so it is safe in a path.
            clock: for ages.
            uniform: spreads what many agents would do at once.
            cooldown: with a server that answers, but refuses.
            spacing: how rarely to renew and to look.
        """
        self._server = server
        self._node_name = node_name
        self._clock = clock
        self._uniform = uniform
        self._cooldown = cooldown
        self._intervals = intervals or WriteIntervals()
        self._published: dict[str, _PublishedReport] = {}
        self._are_parts_known = False
        self._crowded: dict[str, tuple[str, ...]] = {}

    def last_report(self) -> NeighborReport | None:
        """Return the published report, as the protocol says."""
        return self._read(self._node_name)

    def read_parts(self) -> Mapping[int, SweepPart | None]:
        """Return the parts without their facts, read once up to the first number not taken."""
        if not self._are_parts_known:
            for number in range(MAX_PARTS):
                self._read(self._part_name(number))
                if self._part_name(number) not in self._published:
                    break
            self._are_parts_known = True
        names = ((number, self._part_name(number)) for number in range(MAX_PARTS))
        held = (
            (number, self._published[name]) for number, name in names if name in self._published
        )
        return {number: one.part for number, one in held if one.part is not None}

    def publish(self, reports: Iterable[NeighborReport]) -> Mapping[str, PublishOutcome]:
        """Write what changed, as the protocol says; what has to wait is deferred.

        Raises:
            KubeError: there was no answer, or a refusal; it is patient from then on.
        """
        until_s = self._clock.monotonic() + WRITE_DEADLINE_S
        changes = {}
        for report in reports:
            name = report.metadata.name
            is_late = self._clock.monotonic() > until_s
            changes[name] = self._publish(report, is_late=is_late)
        return changes

    def withdraw(self, names: Iterable[str]) -> None:
        """Empty parts, as the protocol says."""
        for name in names:
            held = self._published.get(name)
            if held is not None and held.part is not None:
                self._publish(build_withdrawn_part(name, held.part.subnet), is_late=False)

    def _publish(self, report: NeighborReport, *, is_late: bool) -> PublishOutcome:
        """Write one report if that is needed and may be tried now."""
        try:
            report = self._fit(report)
            if not self._is_waiting:
                self._check(report.metadata.name)
            wanted = self._needed_change(report)
            if wanted is PublishOutcome.NONE:
                return PublishOutcome.NONE
            if is_late or self._is_waiting:
                return PublishOutcome.DEFERRED
            self._write(report, wanted)
        except KubeUnavailable:
            raise  # the server's own cooldown has noted it
        except KubeError as error:
            self._cooldown.fail(error)
            raise
        self._cooldown.succeed()
        return wanted

    def _fit(self, report: NeighborReport) -> NeighborReport:
        """Return the report as it is sent; tell once what is left out of it.

        Raises:
            KubeError: it cannot be made to fit, which the server would call an error of its own.
        """
        fitted, name = fit_report(report), report.metadata.name
        if fitted.crowded != self._crowded.get(name, ()):
            self._crowded[name] = fitted.crowded
            log.warning(
                "report cut" if fitted.crowded else "report whole again",
                extra={"report": name, "ports": ", ".join(fitted.crowded)},
            )
        if fitted.size_bytes > MAX_OBJECT_BYTES:
            size = fitted.size_bytes
            raise KubeError(f"{name}: {size} bytes are more than the API server takes")
        return fitted.report

    @property
    def _is_waiting(self) -> bool:
        return self._server.blocking_error is not None or self._cooldown.error is not None

    def _needed_change(self, report: NeighborReport) -> PublishOutcome:
        held = self._published.get(report.metadata.name)
        owner = self._owner_uid()
        if held is None or held.spec != _hash_of_spec(report):
            return PublishOutcome.SPEC
        if owner and owner not in held.owners:
            return PublishOutcome.SPEC
        is_due = self._clock.monotonic() >= held.status_due_s
        is_new = held.comparable_status != _comparable_status(report.status)
        return PublishOutcome.STATUS if is_due or is_new else PublishOutcome.NONE

    def _write(self, report: NeighborReport, wanted: PublishOutcome) -> None:
        """Apply spec and status, each alone as the server keeps them; later tries go on here."""
        name, rendered = report.metadata.name, render_report(report)
        if wanted is PublishOutcome.SPEC:
            owner = self._owner_uid()
            metadata = {"ownerReferences": [_owner(self._node_name, owner)]} if owner else {}
            answer = self._apply(name, {"metadata": metadata, "spec": rendered["spec"]})
            self._record_published(report, answer)
        held = self._published[name]
        try:
            self._apply(name, {"status": rendered.get("status", {})}, subresource="/status")
        except KubeNotFound:
            del self._published[name]  # deleted meanwhile: the next round makes it anew
            raise
        held.comparable_status = _comparable_status(report.status)
        held.status_due_s = self._next_status_s(age_s=0.0)

    def _apply(
        self, name: str, fields: Mapping[str, Any], *, subresource: str = ""
    ) -> dict[str, Any]:
        """Apply our fields; those that somebody else has taken are ours again, and that is told.

        Facts are nobody's intent: an edited report is wrong, and would stay so for ever.
        """
        metadata = {"name": name, **fields.get("metadata", {})}
        body = {"apiVersion": API_VERSION, "kind": REPORT_KIND, **fields, "metadata": metadata}

        def request(force: str) -> ApiRequest:
            query = urlencode({"fieldManager": FIELD_MANAGER, "force": force})
            path = f"{REPORTS_PATH}/{name}{subresource}?{query}"
            return ApiRequest("PATCH", path, body, {"Content-Type": APPLY})

        try:
            return self._server.call(request("false"))
        except KubeConflict as error:
            log.warning("own report was changed by another", extra={"error": str(error)})
        return self._server.call(request("true"))

    def _read(self, name: str) -> NeighborReport | None:
        """Read one object and note what the server holds; None where there is none to go by."""
        try:
            answer = self._server.call(ApiRequest("GET", f"{REPORTS_PATH}/{name}"))
        except KubeNotFound:
            self._published.pop(name, None)
            return None
        try:
            report = parse_stored_report(answer)
        except ReportError as error:
            log.warning("own report unreadable", extra={"report": name, "error": str(error)})
            self._published[name] = _PublishedReport(spec="", check_due_s=self._next_check_s())
            return None
        self._record_published(report, answer)
        held = self._published[name]
        held.comparable_status = _comparable_status(report.status)
        held.status_due_s = self._next_status_s(age_s=self._age_s(report.status))
        return report

    def _check(self, name: str) -> None:
        """Look, now and then, whether an object is as we left it; if not, it is written again."""
        held = self._published.get(name)
        if held is None or self._clock.monotonic() < held.check_due_s:
            return
        accept = {"Accept": METADATA_ONLY}
        try:
            answer = self._server.call(ApiRequest("GET", f"{REPORTS_PATH}/{name}", headers=accept))
        except KubeNotFound:
            log.warning("own report is gone", extra={"report": name})
            del self._published[name]
            return
        held.check_due_s = self._next_check_s()
        held.owners = _owners(answer)
        if _generation(answer) != held.generation:
            log.warning("own report was changed by another", extra={"report": name})
            held.spec = ""

    def _record_published(self, report: NeighborReport, answer: Mapping[str, Any]) -> None:
        sweep = None if is_withdrawn(report) else report.spec.sweep
        before = self._published.get(report.metadata.name)
        self._published[report.metadata.name] = _PublishedReport(
            spec=_hash_of_spec(report),
            comparable_status="",  # times tell of facts, so they are written with them
            check_due_s=before.check_due_s if before else self._next_check_s(),
            generation=_generation(answer),
            owners=_owners(answer),
            part=sweep.model_copy(update={"facts": ""}) if sweep else None,
        )

    def _owner_uid(self) -> str:
        """Return the uid of our Node, empty where the token does not say.

        A reference with a wrong uid would let the garbage collector remove the report.
        """
        node = self._server.own_node()
        return node.uid if node and node.name == self._node_name else ""

    def _part_name(self, number: int) -> str:
        return f"{self._node_name}.sweep.{number}"

    def _next_check_s(self) -> float:
        spread_s = self._uniform(0, self._intervals.check_s / 2)
        return self._clock.monotonic() + self._intervals.check_s + spread_s

    def _next_status_s(self, *, age_s: float) -> float:
        spread_s = self._uniform(0, self._intervals.status_spread_s)
        return self._clock.monotonic() + max(self._intervals.status_s - age_s, 0.0) + spread_s

    def _age_s(self, status: ReportStatus) -> float:
        """Return how old a status is; one without a time, or ahead of ours, is not old."""
        try:
            observed = datetime.fromisoformat(status.observed_at or "")
        except ValueError:
            return 0.0
        if observed.tzinfo is None:
            return 0.0
        return max((self._clock.now() - observed).total_seconds(), 0.0)


def _hash_of_spec(report: NeighborReport) -> str:
    return hashlib.sha256(_json(render_report(report)["spec"])).hexdigest()


def _comparable_status(status: ReportStatus) -> str:
    """Return what must be told at once when it changes: all but times, and words for people."""
    collectors = tuple(one.model_copy(update={"message": ""}) for one in status.collectors)
    told = status.model_copy(update={"observed_at": None, "collectors": collectors})
    return told.model_dump_json()


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _owner(name: str, uid: str) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}


def _owners(answer: Mapping[str, Any]) -> frozenset[str]:
    references = answer.get("metadata", {}).get("ownerReferences") or ()
    return frozenset(str(one.get("uid")) for one in references)


def _generation(answer: Mapping[str, Any]) -> int | None:
    found = answer.get("metadata", {}).get("generation")
    return found if isinstance(found, int) else None
