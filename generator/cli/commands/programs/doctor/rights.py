"""The rights that the generator's service account needs, as the chart grants them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from generator.kube.lease_record import LEASE_NAME
from generator.kube.resources import (
    CONFIG_MAPS,
    FABRICS,
    HYPERNODES,
    LEASES,
    NODES,
    PODS,
    RECORDS,
    REPORTS,
    RESERVATIONS,
    Resource,
)
from generator.objects.outputs import OutputType
from generator.outputs.kai import POD_GROUPS
from generator.reconcile.rendered import KINDS, NAMESPACED
from generator.store.history_object import NAME as HISTORY_NAME
from generator.telemetry.events import EVENTS
from generator.telemetry.events import NAMESPACE as EVENTS_NAMESPACE

ACCOUNT: Final = "toponaut-generator"
"""The name of the service account."""
_READ: Final = ("get", "list", "watch")
_KEEP: Final = ("get", "list", "watch", "create", "patch", "delete")


class Right(NamedTuple):
    """One verb on one kind of object, as an access review asks for it."""

    group: str
    """Empty for the core group."""
    plural: str
    verb: str
    subresource: str = ""
    namespace: str = ""
    """Empty: in all namespaces, or a kind without namespaces."""
    name: str = ""
    """The only object; empty: every object."""

    def __str__(self) -> str:
        """Return the right as `kubectl auth can-i` takes it."""
        kind = f"{self.plural}.{self.group}" if self.group else self.plural
        one = f"/{self.name}" if self.name else ""
        subresource = f" --subresource={self.subresource}" if self.subresource else ""
        namespace = f" -n {self.namespace}" if self.namespace else ""
        return f"{self.verb} {kind}{one}{subresource}{namespace}"


def list_needed_rights(
    outputs: Collection[str], namespace: str, *, walks_switches: bool, keeps_history: bool
) -> list[Right]:
    """Return the rights that the generator needs in a cluster, without duplicates.

    Args:
        outputs: the types in `spec.outputs`.
        namespace: the namespace of Toponaut.
        walks_switches: whether the generator writes reports of switches.
        keeps_history: whether it keeps a history, which outlives its pod in a ConfigMap.
    """
    rights = [*_iterate_rights(outputs, namespace)]
    if walks_switches:
        rights += _rights_of(REPORTS, ("create", "patch", "delete"))
        rights += _rights_of(REPORTS, ("get", "patch"), subresource="status")
    if keeps_history:
        verbs = ("get", "create", "patch")
        rights += _rights_of(CONFIG_MAPS, verbs, namespace=namespace, name=HISTORY_NAME)
    return list(dict.fromkeys(rights))


def _iterate_rights(outputs: Collection[str], namespace: str) -> Iterator[Right]:
    for kind in (NODES, PODS, REPORTS, FABRICS):
        yield from _rights_of(kind, _READ)
    yield from _rights_of(FABRICS, ("create", "patch"))
    yield from _rights_of(FABRICS, ("get", "patch"), subresource="status")
    yield from _rights_of(RECORDS, (*_READ, "create", "patch"))
    yield from _rights_of(RESERVATIONS, ("list", "watch", "create", "delete"))
    yield from _rights_of(RESERVATIONS, ("patch",), subresource="status")
    yield from _rights_of(HYPERNODES, _KEEP)
    yield from _rights_of(LEASES, ("create",), namespace=namespace)
    yield from _rights_of(LEASES, ("get", "update"), namespace=namespace, name=LEASE_NAME)
    yield from _rights_of(EVENTS, ("create",), namespace=EVENTS_NAMESPACE)
    for output, kinds in KINDS.items():
        for kind in kinds if output in outputs else ():
            if kind == NODES:
                yield from _rights_of(kind, ("patch",))
            else:
                where = namespace if kind in NAMESPACED else ""
                yield from _rights_of(kind, _KEEP, namespace=where)
    if OutputType.KAI in outputs:  # whether a Topology is in use
        yield from _rights_of(POD_GROUPS, ("list",))


def _rights_of(
    kind: Resource,
    verbs: Collection[str],
    *,
    subresource: str = "",
    namespace: str = "",
    name: str = "",
) -> Iterator[Right]:
    for verb in verbs:
        yield Right(kind.group, kind.plural, verb, subresource, namespace, name)
