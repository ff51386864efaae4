"""The record in the Lease with which replicas elect a leader: parsed and rendered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

from generator.kube.resources import LEASES
from runtime.values import parse_address
from topology.model.errors import ConfigError, KubeUnavailable

LEASE_NAME: Final = "toponaut-generator"
"""The name of the Lease of the leader, which alone writes."""
ADDRESS_ANNOTATION: Final = "toponaut.io/address"
MAX_DURATION_S: Final = 600
"""A longer duration in a lease is cut to this."""


class Leader(NamedTuple):
    """The replica that holds the lease."""

    name: str
    """The identity without the random part: the name of its pod."""
    address: str
    """`HOST:PORT` at which it answers calls; empty if it answers none, as a command does."""

    @property
    def is_remote(self) -> bool:
        """Whether other machines can reach the address: it is a name, or no loopback address."""
        try:
            host = parse_address(self.address).host
        except ConfigError:
            return False
        try:
            return not ip_address(host).is_loopback
        except ValueError:
            return True


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The content of a lease."""

    holder: str
    """The identity of the holder; empty without a holder."""
    duration_s: int
    """How long the lease is valid without a renewal."""
    transitions: int
    """How often the holder changed."""
    acquired_at: str = ""
    """When the holder acquired the lease; only for people."""
    address: str = ""
    """`HOST:PORT` at which the holder answers calls; empty if it publishes none."""

    @property
    def leader(self) -> Leader | None:
        """The leader; None without a holder."""
        name = self.holder.rpartition("_")[0] or self.holder
        return Leader(name, self.address) if self.holder else None


def parse_lease(document: Mapping[str, Any]) -> tuple[LeaseRecord, str]:
    """Return the record of a Lease object and the object's version.

    Raises:
        KubeUnavailable: the object is not a Lease.
    """
    metadata, spec = document.get("metadata"), document.get("spec")
    if not isinstance(metadata, Mapping) or not isinstance(spec, Mapping | None):
        raise KubeUnavailable("expected a Lease with metadata")
    values, annotations = spec or {}, metadata.get("annotations")
    record = LeaseRecord(
        holder=str(values.get("holderIdentity") or ""),
        duration_s=min(_parse_count(values.get("leaseDurationSeconds")), MAX_DURATION_S),
        transitions=_parse_count(values.get("leaseTransitions")),
        acquired_at=str(values.get("acquireTime") or ""),
        address=(
            str(annotations.get(ADDRESS_ANNOTATION) or "")
            if isinstance(annotations, Mapping)
            else ""
        ),
    )
    return record, str(metadata.get("resourceVersion", ""))


def render_lease(
    record: LeaseRecord, *, namespace: str, name: str, version: str, now: datetime
) -> dict[str, Any]:
    """Return the object to write.

    Args:
        record: the content of the lease.
        namespace: the namespace of the object.
        name: the name of the object.
        version: the version to replace: the write fails if the object has another version; empty
            for a new object.
        now: shown as the time of renewal; no replica uses it.
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
    """Return a time in the format of leases: UTC, always with microseconds."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _parse_count(value: object) -> int:
    return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else 0
