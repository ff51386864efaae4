"""Writes this node's reports to an API server, and reads its own last reports back.

Only changes are written: a spec if its facts differ, a status if an outcome differs or if the
status is older than six hours. The writer knows the stored objects from one read at the start and
from the answers to its own writes. Every ten minutes it reads them again, to notice changes by
other clients. The agent may not delete or list objects: it empties outdated parts of sweeps, and
numbers the parts without gaps.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from msgspec.structs import replace

from agent.publish.destination import PublishOutcome
from agent.publish.kube.https_client import APPLY, MERGE, ApiClient, ApiRequest
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
    MAX_PART_NUMBERS,
    REPORT_KIND,
    NeighborReport,
    ReportStatus,
    SweepPart,
    build_withdrawn_part,
    parse_stored_report,
    render_report,
)
from topology.reports.observed_time import parse_observed_at

log = logging.getLogger(__name__)

FIELD_MANAGER: Final = "toponaut-agent"
REPORTS_PATH: Final = f"/apis/{API_VERSION}/neighborreports"
STATUS_AGE_S: Final = 6 * 3600.0
"""The age at which a status with only newer times is written again, plus up to the spread."""
STATUS_SPREAD_S: Final = 3600.0
CHECK_INTERVAL_S: Final = 600.0
"""The time between checks for changes by other clients, plus up to half as much."""
_INVALID: Final = 422
"""The stored object does not fit the current schema."""
WRITE_DEADLINE_S: Final = 20.0
"""The parts of a large sweep that are not written by then wait for the next round."""


@dataclass(slots=True)
class _PublishedReport:
    """The object that the server holds under one name."""

    spec: str
    """Hash of the facts."""
    comparable_status: str = ""
    """The status without times and messages; empty if not known."""
    status_due_s: float = 0.0
    check_due_s: float = 0.0
    owners: frozenset[str] = frozenset()
    """Uids."""
    part: SweepPart | None = None
    """Without its facts; None for the node's own report, and for a withdrawn part."""


class ReportWriter:
    """The NeighborReports of one node: `N`, and `N.sweep.<i>` for the parts of its sweeps."""

    def __init__(
        self,
        server: ApiClient,
        node_name: str,
        clock: Clock,
        uniform: Uniform,
        *,
        cooldown: Cooldown,
    ) -> None:
        """Send no request yet.

        Args:
            server: the API server.
            node_name: the node's name, which is checked and so safe in a path.
            clock: the clock for ages.
            uniform: spreads the writes and checks of many agents.
            cooldown: limits requests to a server that answers but refuses.
        """
        self._server = server
        self._node_name = node_name
        self._clock = clock
        self._uniform = uniform
        self._cooldown = cooldown
        self._published: dict[str, _PublishedReport] = {}
        self._are_parts_known = False
        self._crowded: dict[str, tuple[str, ...]] = {}

    def last_report(self) -> NeighborReport | None:
        """Return the published report, as `Destination` describes."""
        return self._read(self._node_name)

    def read_parts(self) -> Mapping[int, SweepPart | None]:
        """Return the published parts, without their facts.

        The first call reads them from the API server, up to the first part that does not exist.
        """
        if not self._are_parts_known:
            for number in range(MAX_PART_NUMBERS):
                self._read(self._part_name(number))
                if self._part_name(number) not in self._published:
                    break
            self._are_parts_known = True
        names = ((number, self._part_name(number)) for number in range(MAX_PART_NUMBERS))
        published = (
            (number, self._published[name]) for number, name in names if name in self._published
        )
        return {number: report.part for number, report in published if report.part is not None}

    def publish(self, reports: Iterable[NeighborReport]) -> Mapping[str, PublishOutcome]:
        """Write the reports that changed, as `Destination` describes; defer those that must wait.

        Raises:
            KubeError: no answer came, or the server refused; a cooldown starts.
        """
        until_s = self._clock.monotonic() + WRITE_DEADLINE_S
        changes = {}
        for report in reports:
            name = report.metadata.name
            is_late = self._clock.monotonic() > until_s
            changes[name] = self._publish(report, is_late=is_late)
        return changes

    def withdraw(self, names: Iterable[str]) -> None:
        """Empty the parts, because an agent may not delete objects."""
        for name in names:
            published = self._published.get(name)
            if published is not None and published.part is not None:
                self._publish(build_withdrawn_part(name, published.part.subnet), is_late=False)

    def _publish(self, report: NeighborReport, *, is_late: bool) -> PublishOutcome:
        """Write one report if it changed and no cooldown runs."""
        try:
            report = self._fit(report)
            if not self._is_waiting:
                self._check(report.metadata.name)
            change = self._needed_change(report)
            if change is PublishOutcome.NONE:
                return PublishOutcome.NONE
            if is_late or self._is_waiting:
                return PublishOutcome.DEFERRED
            self._write(report, change)
        except KubeUnavailable:
            raise  # the client's own cooldown has recorded it
        except KubeError as error:
            self._cooldown.fail(error)
            raise
        self._cooldown.succeed()
        return change

    def _fit(self, report: NeighborReport) -> NeighborReport:
        """Return the report within the size limit; log changes of the omitted ports once.

        Raises:
            KubeError: the report cannot be made to fit; the server would answer with a 500.
        """
        fitted, name = fit_report(report), report.metadata.name
        if fitted.crowded != self._crowded.get(name, ()):
            self._crowded[name] = fitted.crowded
            log.warning(
                "report cut" if fitted.crowded else "report complete again",
                extra={"report": name, "ports": ", ".join(fitted.crowded)},
            )
        if fitted.size_bytes > MAX_OBJECT_BYTES:
            size = fitted.size_bytes
            raise KubeError(f"{name}: {size} bytes are more than the API server accepts")
        return fitted.report

    @property
    def _is_waiting(self) -> bool:
        return self._server.blocking_error is not None or self._cooldown.error is not None

    def _needed_change(self, report: NeighborReport) -> PublishOutcome:
        published = self._published.get(report.metadata.name)
        owner = self._owner_uid()
        if published is None or published.spec != _hash_of_spec(report):
            return PublishOutcome.SPEC
        if owner and owner not in published.owners:
            return PublishOutcome.SPEC
        is_due = self._clock.monotonic() >= published.status_due_s
        is_new = published.comparable_status != _comparable_status(report.status)
        return PublishOutcome.STATUS if is_due or is_new else PublishOutcome.NONE

    def _write(self, report: NeighborReport, change: PublishOutcome) -> None:
        """Apply the spec if it changed, then the status, which is a subresource."""
        name, rendered = report.metadata.name, render_report(report)
        if change is PublishOutcome.SPEC:
            owner = self._owner_uid()
            metadata = {"ownerReferences": [_owner(self._node_name, owner)]} if owner else {}
            answer = self._apply(name, {"metadata": metadata, "spec": rendered["spec"]})
            self._record_published(report, answer)
        published = self._published[name]
        try:
            self._apply(name, {"status": rendered.get("status", {})}, subresource="/status")
        except KubeNotFound:
            del self._published[name]  # deleted meanwhile: the next round creates it again
            raise
        published.comparable_status = _comparable_status(report.status)
        published.status_due_s = self._next_status_s(age_s=0.0)

    def _apply(
        self, name: str, fields: Mapping[str, Any], *, subresource: str = ""
    ) -> dict[str, Any]:
        """Apply our fields; if another client changed them, log it and take them back.

        A report holds facts, not intent: an edited report is wrong, and would stay wrong forever.
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
            log.warning("own report changed by another client", extra={"error": str(error)})
        return self._server.call(request("true"))

    def _read(self, name: str) -> NeighborReport | None:
        """Read one object and record it; return None if there is no readable report."""
        try:
            answer = self._server.call(_read_request(name))
            report = parse_stored_report(answer)
        except KubeNotFound:
            self._published.pop(name, None)
            return None
        except (ReportError, KubeError) as error:
            if isinstance(error, KubeError) and error.status != _INVALID:
                raise
            log.warning("own report unreadable", extra={"report": name, "error": str(error)})
            self._published[name] = _PublishedReport(spec="", check_due_s=self._next_check_s())
            return None
        before = self._published.get(name)
        self._record_published(report, answer)
        published = self._published[name]
        published.check_due_s = self._next_check_s()
        published.comparable_status = _comparable_status(report.status)
        published.status_due_s = (
            before.status_due_s if before else self._next_status_s(age_s=self._age_s(report.status))
        )
        return report

    def _check(self, name: str) -> None:
        """Read an object again from time to time: another client may have changed it."""
        published = self._published.get(name)
        if published is None or self._clock.monotonic() < published.check_due_s:
            return
        self._read(name)
        found = self._published.get(name)
        if found is None:
            log.warning("own report deleted", extra={"report": name})
        elif found.spec != published.spec:
            log.warning("own report changed by another client", extra={"report": name})

    def _record_published(self, report: NeighborReport, answer: Mapping[str, Any]) -> None:
        part = report.spec.sweep
        sweep = None if part is None or part.is_withdrawn else part
        before = self._published.get(report.metadata.name)
        self._published[report.metadata.name] = _PublishedReport(
            spec=_hash_of_spec(report),
            comparable_status="",  # the status has the time of the facts, so write it again too
            check_due_s=before.check_due_s if before else self._next_check_s(),
            owners=_owners(answer),
            part=replace(sweep, facts="") if sweep else None,
        )

    def _owner_uid(self) -> str:
        """Return the uid of our Node; empty if the token does not contain it.

        A reference with a wrong uid would let the garbage collector remove the report.
        """
        node = self._server.own_node()
        return node.uid if node and node.name == self._node_name else ""

    def _part_name(self, number: int) -> str:
        return f"{self._node_name}.sweep.{number}"

    def _next_check_s(self) -> float:
        spread_s = self._uniform(0, CHECK_INTERVAL_S / 2)
        return self._clock.monotonic() + CHECK_INTERVAL_S + spread_s

    def _next_status_s(self, *, age_s: float) -> float:
        spread_s = self._uniform(0, STATUS_SPREAD_S)
        return self._clock.monotonic() + max(STATUS_AGE_S - age_s, 0.0) + spread_s

    def _age_s(self, status: ReportStatus) -> float:
        """Return the age of a status; 0 if it has no time, or a time in the future."""
        observed = parse_observed_at(status.observed_at)
        if observed is None:
            return 0.0
        return max((self._clock.now() - observed).total_seconds(), 0.0)


def _read_request(name: str) -> ApiRequest:
    """Return the request that reads one of our objects: a patch that changes nothing, as a dry run.

    An agent may not `get` reports, because that right would cover those of all nodes. The
    admission policy checks a patch, so this returns only objects of our node. It writes nothing.
    """
    path = f"{REPORTS_PATH}/{name}?dryRun=All"
    return ApiRequest("PATCH", path, {}, {"Content-Type": MERGE})


def _hash_of_spec(report: NeighborReport) -> str:
    return hashlib.sha256(_json(render_report(report)["spec"])).hexdigest()


def _comparable_status(status: ReportStatus) -> str:
    """Return the part of a status whose changes are urgent: all but times and messages."""
    collectors = tuple(replace(collector, message="") for collector in status.collectors)
    return str(replace(status, observed_at=None, collectors=collectors))


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _owner(name: str, uid: str) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}


def _owners(answer: Mapping[str, Any]) -> frozenset[str]:
    references = answer.get("metadata", {}).get("ownerReferences") or ()
    return frozenset(str(reference.get("uid")) for reference in references)
