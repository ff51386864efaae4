"""What a cluster says about itself, as `toponaut doctor` judges it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from generator.cli.commands.doctor.rights import Right
from generator.objects.outputs import OutputType


class Fact(NamedTuple):
    """The answer to one request."""

    value: Any = None
    """The decoded object; None if there is none, or if it could not be read."""
    problem: str = ""
    """Why it could not be read; empty if it was read, or if it does not exist."""


class CrdFact(NamedTuple):
    """One CustomResourceDefinition."""

    served: frozenset[str]
    """The versions that the API server serves."""
    is_established: bool


class AgentSetFact(NamedTuple):
    """One DaemonSet of agents."""

    name: str
    num_wanted: int
    """The nodes that should have a pod."""
    num_ready: int
    account: str = ""
    """The name of the service account of its pods."""


class Account(NamedTuple):
    """A service account."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return the account as `kubectl` writes it."""
        return f"{self.namespace}/{self.name}"

    @property
    def user(self) -> str:
        """Its user name at the API server."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def groups(self) -> frozenset[str]:
        """The groups that the API server puts it in."""
        own = f"system:serviceaccounts:{self.namespace}"
        return frozenset({"system:serviceaccounts", own, "system:authenticated"})


class PolicyFact(NamedTuple):
    """One ValidatingAdmissionPolicy, or one ValidatingAdmissionPolicyBinding."""

    name: str
    spec: Mapping[str, Any]


class RoleBindingFact(NamedTuple):
    """One ClusterRoleBinding."""

    name: str
    labels: Mapping[str, str]
    role: str
    """The name of the ClusterRole."""
    accounts: frozenset[Account]
    groups: frozenset[str]


class RightsFact(NamedTuple):
    """The account of the generator."""

    account: Account
    refused: Sequence[Right]
    """The rights that it needs and has not."""


class CertificateFact(NamedTuple):
    """The certificate of the placement service, without its key."""

    secret: str
    """The name of the Secret."""
    expires: datetime | None
    """When the first of its chain expires; None: the Secret has no certificate in PEM."""


class ReportFact(NamedTuple):
    """One NeighborReport, without its ports."""

    name: str
    observed_at: str
    """RFC 3339; empty if the report has no time."""
    failures: Sequence[tuple[str, str]] = ()
    """The collectors that failed, each with its message."""
    num_infiniband: int = 0
    """Its InfiniBand ports."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a cluster says about itself."""

    version: Fact
    """The API server's `/version`."""
    crds: Fact
    """`CrdFact` by name."""
    fabric: Fact
    """The Fabric object."""
    lease: Fact
    """The Lease of the generator."""
    nodes: Fact
    """The names of the nodes, as a tuple."""
    reports: Fact
    """A tuple of `ReportFact`."""
    agent_sets: Fact
    """A tuple of `AgentSetFact`."""
    refused_rights: Fact
    """A `RightsFact`; None without an account of the generator."""
    policies: Fact
    """A tuple of `PolicyFact`, of Toponaut's policies; None if the API server has no such kind."""
    policy_bindings: Fact
    """A tuple of `PolicyFact`, of their bindings."""
    role_bindings: Fact
    """A tuple of `RoleBindingFact`, of those that give a role of Toponaut."""
    pod_accounts: Fact
    """The accounts of the pods: a set of `Account` by the role that the pods need."""
    certificate: Fact
    """A `CertificateFact`; None if the placement service has no TLS."""
    scheduler_config: Fact
    """The ConfigMap of Volcano's scheduler."""
    controller_config: Fact
    """The ConfigMap of Volcano's controller."""


def list_outputs(fabric: Fact) -> frozenset[str]:
    """Return the types in `spec.outputs`; HyperNodes alone if nothing is set."""
    spec = as_mapping(as_mapping(fabric.value).get("spec"))
    if "outputs" not in spec:
        return frozenset({OutputType.HYPERNODE})
    return frozenset(str(as_mapping(row).get("type")) for row in as_rows(spec["outputs"]))


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return a value if it is a mapping, else an empty one: objects of others may hold anything."""
    return value if isinstance(value, Mapping) else {}


def as_rows(value: object) -> Sequence[object]:
    """Return a value if it is a list, else an empty one."""
    return value if isinstance(value, list) else ()
