"""What a cluster says about itself: bounded requests for each fact, each of which may fail."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from cryptography.x509 import load_pem_x509_certificates

from generator.cli.commands.programs.doctor.rights import ACCOUNT, Right, list_needed_rights
from generator.kube.access import ClusterAccess
from generator.kube.credentials import find_credentials
from generator.kube.lease_record import LEASE_NAME
from generator.kube.reflector import Paging, fetch_objects
from generator.kube.resources import CONFIG_MAPS, CRDS, FABRICS, LEASES, NODES, REPORTS, Resource
from generator.kube.transport import KubeRequest, KubeTransport, Transport, decode_object
from generator.objects.document import mapping_at, rows_at
from generator.objects.outputs import OutputType
from topology.model.errors import KubeError, KubeNotFound, KubeUnavailable, show
from topology.model.facts import Medium
from topology.reports.fabric_status import FABRIC_NAME

DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
POLICIES: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
)
POLICY_BINDINGS: Final = POLICIES._replace(
    plural="validatingadmissionpolicybindings", kind="ValidatingAdmissionPolicyBinding"
)
ROLE_BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding"
)
SECRETS: Final = Resource("", "v1", "secrets", "Secret")
SERVICE_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_AGENTS: Final = "toponaut-agent"
_AGENT_SETS: Final = (_AGENTS, "toponaut-sweeper")
_DEPLOYMENT: Final = "toponaut-generator"
_OURS: Final = "toponaut"
"""Names of Toponaut's objects contain these, also with a prefix or a suffix from kustomize."""
_TLS_VOLUME: Final = "tls"
_CERTIFICATE: Final = "tls.crt"
_FAILED: Final = "failed"
TIMEOUT_S: Final = 15.0
_PAGES: Final = Paging(request_timeout_s=TIMEOUT_S)
_VOLCANO_CONFIG: Final = ("volcano-scheduler-configmap", "volcano-controller-configmap")


class Fact(NamedTuple):
    """The answer to one request."""

    value: Any = None
    """The decoded object; None if there is none, or if it could not be read."""
    problem: str = ""
    """Why the fact could not be read; empty if it was read, or if it does not exist."""


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
    """When the first certificate of the chain expires; None: the Secret has no certificate in
    PEM."""


class ReportFact(NamedTuple):
    """One NeighborReport, without its ports."""

    name: str
    observed_at: str
    """RFC 3339; empty if the report has no time."""
    failures: Sequence[tuple[str, str]] = ()
    """The collectors that failed, each with its message."""
    num_infiniband: int = 0
    """The InfiniBand ports of the node."""


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
    spec = mapping_at(fabric.value, "spec")
    if "outputs" not in spec:
        return frozenset({OutputType.HYPERNODE})
    return frozenset(str(row.get("type")) for row in rows_at(spec, "outputs"))


def fetch_cluster_facts(
    access: ClusterAccess,
    environ: Mapping[str, str],
    *,
    namespace: str,
    volcano_namespace: str,
) -> ClusterFacts:
    """Return the facts of a cluster. A request that fails costs that fact.

    Args:
        access: how to reach the cluster.
        environ: the environment, for credentials.
        namespace: the namespace of Toponaut.
        volcano_namespace: the namespace of Volcano.

    Raises:
        ConfigError: there are no credentials, or they are unusable.
        KubeUnavailable: the API server does not answer.
    """
    load = find_credentials(kubeconfig=access.kubeconfig, context=access.context, environ=environ)
    with closing(KubeTransport(load)) as transport:
        version = _read(transport, "/version")
        deployment = _read_list(
            transport, DEPLOYMENTS._replace(namespace=namespace), dict, _find_generator
        )
        fabric = _read(transport, FABRICS.path(FABRIC_NAME))
        config = [
            _read(transport, CONFIG_MAPS.path(name, namespace=volcano_namespace))
            for name in _VOLCANO_CONFIG
        ]
        agent_sets = _read_list(
            transport, DAEMON_SETS._replace(namespace=namespace), _parse_agent_set, _keep_agents
        )
        return ClusterFacts(
            version=version,
            crds=_read_list(transport, CRDS, _parse_crd, dict),
            fabric=fabric,
            lease=_read(transport, LEASES.path(LEASE_NAME, namespace=namespace)),
            nodes=_read_list(transport, NODES, _parse_name, tuple),
            reports=_read_list(transport, REPORTS, _parse_report, tuple),
            agent_sets=agent_sets,
            policies=_read_list(transport, POLICIES, _parse_policy, _keep_ours),
            policy_bindings=_read_list(transport, POLICY_BINDINGS, _parse_policy, tuple),
            role_bindings=_read_list(transport, ROLE_BINDINGS, _parse_role_binding, _keep_ours),
            pod_accounts=_list_pod_accounts(agent_sets, deployment, namespace),
            refused_rights=_find_refused_rights(transport, fabric, deployment, namespace),
            certificate=_read_certificate(transport, deployment, namespace),
            scheduler_config=config[0],
            controller_config=config[1],
        )


def _read(transport: Transport, path: str) -> Fact:
    """Return one object.

    Raises:
        KubeUnavailable: the API server does not answer.
    """
    request = KubeRequest("GET", path)
    return _as_fact(
        lambda: decode_object(str(request), transport.ask(request, timeout_s=TIMEOUT_S))
    )


def _read_list(
    transport: Transport,
    resource: Resource,
    parse: Callable[[Mapping[str, Any]], Any],
    collect: Callable[[list[Any]], Any],
) -> Fact:
    """Return all objects of a kind, each reduced while its page is read.

    Raises:
        KubeUnavailable: the API server does not answer.
    """
    return _as_fact(
        lambda: collect([parse(item) for item in fetch_objects(transport, resource, [], _PAGES)])
    )


def _as_fact(read: Callable[[], Any]) -> Fact:
    """Return the value that `read` returns, or the reason why reading fails."""
    try:
        return Fact(read())
    except KubeNotFound:
        return Fact()
    except KubeUnavailable:
        raise
    except (KubeError, ValueError, KeyError, TypeError, AttributeError) as error:
        return Fact(problem=show(str(error), 400))


def _parse_name(item: Mapping[str, Any]) -> str:
    return str(item["metadata"]["name"])


def _parse_report(item: Mapping[str, Any]) -> ReportFact:
    observed_at = mapping_at(item, "status").get("observedAt")
    return ReportFact(
        _parse_name(item),
        observed_at if isinstance(observed_at, str) else "",
        tuple(
            (str(row.get("name")), str(row.get("message", "")))
            for row in rows_at(item, "status", "collectors")
            if row.get("outcome") == _FAILED
        ),
        sum(port.get("medium") == Medium.INFINIBAND for port in rows_at(item, "spec", "ports")),
    )


def _parse_crd(item: Mapping[str, Any]) -> tuple[str, CrdFact]:
    versions = item["spec"]["versions"]
    conditions = (item.get("status") or {}).get("conditions") or []
    return _parse_name(item), CrdFact(
        frozenset(row["name"] for row in versions if row["served"]),
        any(row["type"] == "Established" and row["status"] == "True" for row in conditions),
    )


def _parse_agent_set(item: Mapping[str, Any]) -> AgentSetFact:
    status = item.get("status") or {}
    wanted, ready = (
        int(status.get(field, 0)) for field in ("desiredNumberScheduled", "numberReady")
    )
    return AgentSetFact(_parse_name(item), wanted, ready, _read_account(Fact(item)))


def _keep_agents(rows: list[AgentSetFact]) -> tuple[AgentSetFact, ...]:
    return tuple(row for row in rows if any(name in row.name for name in _AGENT_SETS))


def _find_generator(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    return next((row for row in rows if _DEPLOYMENT in _parse_name(row)), None)


def _parse_policy(item: Mapping[str, Any]) -> PolicyFact:
    return PolicyFact(_parse_name(item), item.get("spec") or {})


def _parse_role_binding(item: Mapping[str, Any]) -> RoleBindingFact:
    subjects = item.get("subjects") or []
    return RoleBindingFact(
        _parse_name(item),
        item["metadata"].get("labels") or {},
        item["roleRef"]["name"],
        frozenset(
            Account(row["namespace"], row["name"])
            for row in subjects
            if row["kind"] == SERVICE_ACCOUNTS.kind
        ),
        frozenset(row["name"] for row in subjects if row["kind"] == "Group"),
    )


def _keep_ours(rows: list[Any]) -> tuple[Any, ...]:
    """Return the policies of Toponaut, or the bindings that its policies or roles need."""
    return tuple(row for row in rows if any(_OURS in text for text in _list_names(row)))


def _list_names(row: PolicyFact | RoleBindingFact) -> tuple[str, ...]:
    if isinstance(row, RoleBindingFact):
        return (row.name, row.role, *row.labels)
    return (row.name,)


def _list_pod_accounts(agent_sets: Fact, deployment: Fact, namespace: str) -> Fact:
    """Return the accounts of the pods of agents and generator, by the role that they need."""
    names = {
        _AGENTS: {row.account for row in agent_sets.value or ()},
        _DEPLOYMENT: {_read_account(deployment)},
    }
    return Fact(
        {
            role: frozenset(Account(namespace, name) for name in found if name)
            for role, found in names.items()
        }
    )


def _read_account(workload: Fact) -> str:
    """Return the service account of the pods of a workload; empty without a workload."""
    if not workload.value:
        return ""
    return str(_read_pod_spec(workload).get("serviceAccountName") or "default")


def _find_refused_rights(
    transport: Transport, fabric: Fact, deployment: Fact, namespace: str
) -> Fact:
    """Return the account of the generator and its `RightsFact`; None without the account.

    Asks by access reviews, which the API server answers and does not store.

    Raises:
        KubeUnavailable: the API server does not answer.
    """
    name = _read_account(deployment) or ACCOUNT
    account = _read(transport, SERVICE_ACCOUNTS.path(name, namespace=namespace))
    if account.value is None:
        return account
    one = Account(namespace, name)
    options = _list_options(deployment)
    needed = list_needed_rights(
        list_outputs(fabric),
        namespace,
        walks_switches="--switches" in options,
        keeps_history="--history" in options,
    )
    return _as_fact(
        lambda: RightsFact(
            one, tuple(row for row in needed if not _is_allowed(transport, row, one))
        )
    )


def _list_options(deployment: Fact) -> frozenset[str]:
    """Return the options of the generator, without their values."""
    words = [
        word
        for row in rows_at(_read_pod_spec(deployment), "containers")
        for word in row.get("args") or ()
    ]
    return frozenset(str(word).partition("=")[0] for word in words)


def _is_allowed(transport: Transport, right: Right, account: Account) -> bool:
    """Return whether an account has a right.

    Raises:
        KubeError: the caller may not ask, or the API server does not answer.
    """
    attributes = {
        "group": right.group,
        "resource": right.plural,
        "verb": right.verb,
        "subresource": right.subresource,
        "namespace": right.namespace,
        "name": right.name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": account.user,
            "groups": sorted(account.groups),
            "resourceAttributes": {name: value for name, value in attributes.items() if value},
        },
    }
    request = KubeRequest("POST", _REVIEWS, body=review)
    answer = decode_object(str(request), transport.ask(request, timeout_s=TIMEOUT_S))
    return answer["status"]["allowed"] is True


def _read_certificate(transport: Transport, deployment: Fact, namespace: str) -> Fact:
    """Return when the certificate of the placement service expires; None without TLS.

    Only the certificate of the Secret is looked at, never its key.

    Raises:
        KubeUnavailable: the API server does not answer.
    """
    if deployment.problem:
        return deployment
    names = [
        str(mapping_at(row, "secret").get("secretName"))
        for row in rows_at(_read_pod_spec(deployment), "volumes")
        if row.get("name") == _TLS_VOLUME
    ]
    if not names:
        return Fact()
    secret = _read(transport, SECRETS.path(names[0], namespace=namespace))
    if secret.problem:
        return secret
    text = mapping_at(secret.value, "data").get(_CERTIFICATE, "")
    try:
        chain = load_pem_x509_certificates(base64.b64decode(text))
    except (ValueError, binascii.Error):
        return Fact(CertificateFact(names[0], None))
    return Fact(
        CertificateFact(names[0], min(certificate.not_valid_after_utc for certificate in chain))
    )


def _read_pod_spec(deployment: Fact) -> Mapping[str, Any]:
    return mapping_at(deployment.value, "spec", "template", "spec")
