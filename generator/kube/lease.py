"""The Lease by which replicas agree who leads: its record, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from generator.kube.resources import LEASES
from topology.model.errors import KubeUnavailable

ADDRESS_ANNOTATION: Final = "toponaut.io/address"
MAX_DURATION_S: Final = 600
"""A holder that claims the lease for longer is believed for this long."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What stands in the lease."""

    holder: str
    """Empty where nobody holds it."""
    duration_s: int
    """How long the holder may go on without renewing."""
    transitions: int
    """How often the holder changed."""
    acquired_at: str = ""
    """When the holder got it; for people."""
    address: str = ""
    """`HOST:PORT` at which the holder answers calls, empty where it tells none."""


def parse_lease(found: Mapping[str, Any]) -> tuple[LeaseRecord, str]:
    """Return the record of a Lease object and the object's version.

    Raises:
        KubeUnavailable: this is no Lease.
    """
    metadata, spec = found.get("metadata"), found.get("spec")
    if not isinstance(metadata, Mapping) or not isinstance(spec, Mapping | None):
        raise KubeUnavailable("expected a Lease with metadata")
    values, marks = spec or {}, metadata.get("annotations")
    record = LeaseRecord(
        holder=str(values.get("holderIdentity") or ""),
        duration_s=min(_parse_count(values.get("leaseDurationSeconds")), MAX_DURATION_S),
        transitions=_parse_count(values.get("leaseTransitions")),
        acquired_at=str(values.get("acquireTime") or ""),
        address=str(marks.get(ADDRESS_ANNOTATION) or "") if isinstance(marks, Mapping) else "",
    )
    return record, str(metadata.get("resourceVersion", ""))


def render_lease(
    record: LeaseRecord, *, namespace: str, name: str, version: str, now: datetime
) -> dict[str, Any]:
    """Return the object to write.

    Args:
        record: what it is to say.
        namespace: of the object.
        name: of the object.
        version: that it replaces: the write fails where it is another; empty for a new object.
        now: shown as the time of renewal; nobody decides by it.
    """
    spec: dict[str, Any] = {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration_s,
        "leaseTransitions": record.transitions,
        "renewTime": render_micro_time(now),
    }
    if record.acquired_at:
        spec["acquireTime"] = record.acquired_at
    metadata: dict[str, Any] = {"namespace": namespace, "name": name}
    if record.address:
        metadata["annotations"] = {ADDRESS_ANNOTATION: record.address}
    if version:
        metadata["resourceVersion"] = version
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": metadata,
        "spec": spec,
    }


def render_micro_time(now: datetime) -> str:
    """Return a time as leases hold it: UTC, always with six digits of a second."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _parse_count(found: object) -> int:
    return max(found, 0) if isinstance(found, int) and not isinstance(found, bool) else 0
