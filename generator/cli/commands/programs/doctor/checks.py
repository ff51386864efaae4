"""The checks of a cluster: what works, what does not, and the command that mends it. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import yaml

from generator.cli.commands.programs.doctor.facts import (
    Account,
    AgentSetFact,
    CertificateFact,
    ClusterFacts,
    CrdFact,
    Fact,
    PolicyFact,
    ReportFact,
    RightsFact,
    RoleBindingFact,
    list_outputs,
)
from generator.cli.output import list_nodes, show_count
from generator.kube.resources import FABRICS, HYPERNODES, RECORDS, REPORTS, RESERVATIONS
from generator.objects.document import mapping_at, rows_at
from generator.objects.fabric import ConditionType
from generator.objects.outputs import OutputType
from generator.reconcile.rendered import KINDS
from runtime.checks import Check, Outcome
from topology.model.errors import list_some, show
from topology.reports.observed_time import parse_observed_at

_MAX_RIGHTS: Final = 6
_TWINS: Final = {
    "toponaut-sweeper-gpu": "toponaut-sweeper",
    "toponaut-sweeper": "toponaut-sweeper-gpu",
    "toponaut-agent-gpu": "",
    "toponaut-agent": "toponaut-agent-gpu",
}
"""By a part of the name of a DaemonSet: the one that may have its pods instead. Nodes with and
without GPUs have DaemonSets of their own, so one is empty if all nodes are of one kind. If
`toponaut-agent-gpu` has no nodes, no agent uses the RuntimeClass of the chart's values."""
_EXPIRY_NOTICE: Final = timedelta(days=14)
"""Two thirds of the life of a certificate of cert-manager's default are over long before."""
POLICIES: Final[Mapping[str, tuple[str, ...]]] = {
    "toponaut-agent": ("own-reports", "sweeps"),
    "toponaut-generator": (
        "own-labels",
        "own-hypernodes",
        "switch-reports",
        "ended-reservations",
        "fabric",
        "lease",
        "events",
        "own-outputs",
    ),
}
"""Per role the ends of the names of the policies that limit whoever has it."""
_MAX_ACCOUNTS: Final = 4
_MISSING: Final = "is missing"
_LOOK: Final = "kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings -o yaml"
_TERMS: Final = ("matchLabels", "matchExpressions")
_OWN_KINDS: Final = (REPORTS, FABRICS, RECORDS, RESERVATIONS)
_OUTPUT_KINDS: Final = {OutputType.HYPERNODE: HYPERNODES} | {
    output: kinds[0] for output, kinds in KINDS.items() if kinds[0].group
}
"""Per output the kind that it needs, unless Kubernetes itself serves it."""
_SYSTEMS: Final = {
    OutputType.HYPERNODE: "Volcano",
    OutputType.KUEUE: "Kueue",
    OutputType.KAI: "KAI",
    OutputType.KOORDINATOR: "Koordinator",
    OutputType.GROVE: "Grove",
    OutputType.NFD: "Node Feature Discovery",
}
"""The systems of these kinds."""
_GOOD: Final[Mapping[str, str]] = {
    ConditionType.READY: "True",
    ConditionType.DEGRADED: "False",
    ConditionType.CHANGE_BLOCKED: "False",
    ConditionType.OUTPUTS_WRITTEN: "True",
}
"""The status of each condition of a Fabric object if nothing is wrong."""
_MIN_MINOR: Final = 30
"""Kubernetes 1.30 is the first with ValidatingAdmissionPolicy, which limits the agents."""
_PRESENT: Final = frozenset({"version", "crds", "reports", "agent_sets"})
"""Facts that every cluster with Toponaut has; others may be absent, which the checks judge."""
_LEASE_SPARE_S: Final = 5
_OLD_REPORTS: Final = timedelta(hours=8)
"""An agent writes its status at least every 7 hours."""
_MAX_SKEW: Final = timedelta(minutes=1)
_PLUGIN: Final = "network-topology-aware"
_INSTALL: Final = "install or upgrade the chart: see docs/install.md"
_DESCRIBE_FABRIC: Final = "kubectl describe fabric default"
_SYNCHRONIZE: Final = "synchronize the clocks (chronyc tracking)"


class _Cluster(NamedTuple):
    """What the checks of one run share."""

    facts: ClusterFacts
    outputs: frozenset[str]
    """The types of outputs in the Fabric object."""
    now: datetime
    """The current time, with a time zone."""
    namespace: str
    """The namespace of Toponaut."""


def check_cluster(facts: ClusterFacts, *, now: datetime, namespace: str) -> list[Check]:
    """Return the checks in the order in which a person would mend them.

    A fact that cannot be read is one check, whatever depends on it.

    Args:
        facts: what was read from the cluster.
        now: the current time, with a time zone.
        namespace: the namespace of Toponaut.
    """
    cluster = _Cluster(facts, list_outputs(facts.fabric), now, namespace)
    checks: list[Check] = []
    reported: set[str] = set()
    for subject, names, judge in _CHECKS:
        problems = {name: found for name in names if (found := _find_gap(facts, name))}
        if not problems:
            rows = judge(getattr(facts, names[0]).value, cluster)
            checks += [row._replace(subject=row.subject or subject) for row in rows]
        elif reported.isdisjoint(problems):
            checks.append(_unknown(next(iter(problems.values())))._replace(subject=subject))
        reported.update(problems)
    return checks


def _find_gap(facts: ClusterFacts, name: str) -> str:
    """Return why a fact is unknown; empty if it is known."""
    fact: Fact = getattr(facts, name)
    return fact.problem or ("missing" if fact.value is None and name in _PRESENT else "")


def _ok(message: str) -> Check:
    return Check("", Outcome.OK, message)


def _warning(message: str, fix: str) -> Check:
    return Check("", Outcome.WARNING, message, fix)


def _error(message: str, fix: str) -> Check:
    return Check("", Outcome.ERROR, message, fix)


def _unknown(problem: str) -> Check:
    return Check("", Outcome.UNKNOWN, f"cannot be read: {show(problem, 400)}")


def _check_version(value: Any, _: _Cluster) -> Iterator[Check]:  # noqa: ANN401 - decoded JSON
    if not isinstance(value, Mapping):
        yield _unknown("no version")
        return
    text = show(str(value.get("gitVersion", "")))
    minor = "".join(char for char in str(value.get("minor", "")) if char.isdigit())
    if minor and int(minor) < _MIN_MINOR:
        message = f"{text}; admission policies, which limit what agents write, need 1.{_MIN_MINOR}"
        yield _warning(message, "upgrade the cluster")
    else:
        yield _ok(text)


def _check_own_crds(crds: Mapping[str, CrdFact], _: _Cluster) -> Iterator[Check]:
    versions = {kind.crd_name: kind.version for kind in _OWN_KINDS}
    shown_versions = ", ".join(sorted(set(versions.values())))
    missing = [name for name in versions if name not in crds]
    unusable = [
        name
        for name, version in versions.items()
        if name in crds and not (crds[name].is_established and version in crds[name].served)
    ]
    if missing:
        yield _error(f"missing: {', '.join(missing)}", _INSTALL)
    if unusable:
        message = f"not established, or {shown_versions} is not served: {', '.join(unusable)}"
        yield _error(message, f"kubectl describe crd {unusable[0]}")
    if not missing and not unusable:
        yield _ok(f"{len(versions)} kinds, {shown_versions}")


def _check_fabric(fabric: object, _: _Cluster) -> Iterator[Check]:
    if fabric is None:
        yield _warning("there is none, so the defaults apply", _INSTALL)
        return
    conditions = rows_at(fabric, "status", "conditions")
    bad = [
        row for row in conditions if row.get("status") != _GOOD.get(str(row.get("type")), "True")
    ]
    for row in bad:
        message = show(f"{row.get('type')} is {row.get('status')}: {row.get('message', '')}", 600)
        if row.get("type") == ConditionType.CHANGE_BLOCKED:
            yield _warning(message, "toponaut plan --kube, then toponaut approve HASH --kube")
        elif row.get("type") == ConditionType.READY:
            yield _error(message, _DESCRIBE_FABRIC)
        else:
            yield _warning(message, _DESCRIBE_FABRIC)
    if not conditions:
        message = "it has no status: no generator has written one yet"
        yield _warning(message, "see the line of the generator")
    elif not bad:
        yield _ok("Ready")


def _check_generator(lease: object, cluster: _Cluster) -> Iterator[Check]:
    look = f"kubectl -n {cluster.namespace} get pods,leases"
    if lease is None:
        message = f"no generator has run: namespace {show(cluster.namespace)} has no Lease of it"
        yield _error(message, f"{look}; --namespace names another one")
        return
    spec = mapping_at(lease, "spec")
    holder, renewed = str(spec.get("holderIdentity") or ""), _parse_time(spec.get("renewTime"))
    duration_s = spec.get("leaseDurationSeconds")
    if not holder or renewed is None or not isinstance(duration_s, int):
        yield _error("no replica leads", look)
        return
    age = cluster.now - renewed
    if age > timedelta(seconds=duration_s + _LEASE_SPARE_S):
        yield _error(show(f"{holder} led last, {_show_age(age)} ago, and nobody leads now"), look)
    elif age < -_MAX_SKEW:
        message = f"its Lease was renewed {_show_age(-age)} ahead of this machine's clock"
        yield _warning(message, _SYNCHRONIZE)
    else:
        yield _ok(f"{show(holder)} leads")


def _check_reports(reports: Sequence[ReportFact], cluster: _Cluster) -> Iterator[Check]:
    look = f"kubectl -n {cluster.namespace} get pods -o wide; on a node: toponaut-agent doctor"
    if not reports:
        yield _error("no agent has written a report", look)
        return
    by_name, now = {row.name: row for row in reports}, cluster.now
    nodes: Sequence[str] = cluster.facts.nodes.value or ()
    silent = [node for node in nodes if node not in by_name]
    times = {row.name: _parse_time(row.observed_at) for row in reports if row.name in set(nodes)}
    old = [name for name, time in times.items() if time is None or now - time > _OLD_REPORTS]
    ahead = [name for name, time in times.items() if time is not None and time - now > _MAX_SKEW]
    count = f"{len(nodes) - len(silent)} of {show_count(len(nodes), 'node')} have a report"
    if cluster.facts.nodes.value is None:
        yield _ok(show_count(len(reports), "report"))
    elif silent:
        yield _warning(f"{count}; not {list_nodes(silent, '')}", look)
    else:
        yield _ok(count)
    if old:
        age = _show_age(_OLD_REPORTS)
        message = f"reports without a time, or of more than {age} ago: {list_nodes(old, '')}"
        yield _warning(message, look)
    if ahead:
        message = f"reports dated ahead of this machine's clock: {list_nodes(ahead, '')}"
        yield _warning(message, _SYNCHRONIZE)


def _check_collectors(reports: Sequence[ReportFact], cluster: _Cluster) -> Iterator[Check]:
    """Yield the collectors that fail, each with its nodes and the message of one of them."""
    messages: dict[str, dict[str, str]] = {}
    for report in reports:
        for name, message in report.failures:
            messages.setdefault(name, {})[report.name] = message
    fix = f"on a node: toponaut-agent doctor, or: kubectl -n {cluster.namespace} logs POD"
    for name, by_node in sorted(messages.items()):
        node, message = next(iter(by_node.items()))
        where = f"{show_count(len(by_node), 'report')} ({list_nodes(list(by_node), '')})"
        yield _warning(f"{show(name)} fails in {where}; {show(node)}: {show(message, 300)}", fix)
    if reports and not messages:
        yield _ok("none fails")


def _check_sweepers(fabric: object, cluster: _Cluster) -> Iterator[Check]:
    if fabric is None:
        return
    rows = rows_at(fabric, "status", "sweepers")
    reports: Sequence[ReportFact] = cluster.facts.reports.value or ()
    hosts = [report.name for report in reports if report.num_infiniband]
    if rows:
        subnets = {str(row.get("subnet")) for row in rows}
        nodes = ", ".join(sorted({show(str(row.get("node"))) for row in rows}))
        yield _ok(f"{show_count(len(subnets), 'subnet')}: {nodes}")
    elif hosts:
        message = f"no node sweeps, although hosts report InfiniBand ports: {list_nodes(hosts, '')}"
        fix = "label at least two nodes of each subnet as sweepers: see docs/install.md"
        yield _warning(message, fix)
    else:
        yield _ok("no node sweeps: no host reports an InfiniBand subnet")


def _check_outputs(crds: Mapping[str, CrdFact], cluster: _Cluster) -> Iterator[Check]:
    for output, kind in _OUTPUT_KINDS.items():
        system = _SYSTEMS[output]
        is_wanted, is_installed = output in cluster.outputs, kind.crd_name in crds
        if is_wanted and not is_installed:
            message = f"spec.outputs has {output}, but the cluster has no {kind.crd_name}"
            fix = f"install {system}, or remove {output} from spec.outputs of the Fabric object"
            yield _error(message, fix)._replace(subject=system)
        elif is_wanted:
            yield _ok(f"installed, and spec.outputs has {output}")._replace(subject=system)
        elif is_installed:
            message = f"installed, but gets nothing from Toponaut: spec.outputs has no {output}"
            fix = f"add `type: {output}` to spec.outputs: see docs/consumers.md"
            yield _warning(message, fix)._replace(subject=system)


def _check_scheduler(crds: Mapping[str, CrdFact], cluster: _Cluster) -> Iterator[Check]:
    """Yield whether Volcano's scheduler reads HyperNodes."""
    if not _uses_volcano(crds, cluster):
        return
    config = cluster.facts.scheduler_config
    if config.value is None:
        yield _unknown(config.problem or "its ConfigMap is not there")
    elif any(_PLUGIN in str(text) for text in _data_of(config)):
        yield _ok(f"uses the plugin {_PLUGIN}")
    else:
        message = f"does not use the plugin {_PLUGIN}, so HyperNodes have no effect"
        yield _error(message, "add it to the tiers in the ConfigMap volcano-scheduler-configmap")


def _check_discovery(crds: Mapping[str, CrdFact], cluster: _Cluster) -> Iterator[Check]:
    """Yield whether Volcano's own discovery writes HyperNodes too."""
    if not _uses_volcano(crds, cluster):
        return
    config = cluster.facts.controller_config
    active = _find_active_discovery(config)
    if active:
        message = f"is on ({', '.join(map(show, active))}): nodes would be in two trees"
        fix = "set enabled: false in networkTopologyDiscovery of volcano-controller-configmap"
        yield _error(message, fix)
    else:
        yield _ok("not configured" if config.value is None else "is off")


def _uses_volcano(crds: Mapping[str, CrdFact], cluster: _Cluster) -> bool:
    return HYPERNODES.crd_name in crds and OutputType.HYPERNODE in cluster.outputs


def _data_of(fact: Fact) -> Iterable[object]:
    """Return the texts of a ConfigMap."""
    return mapping_at(fact.value, "data").values()


def _find_active_discovery(fact: Fact) -> list[str]:
    """Return the sources of Volcano's own discovery that are on; an unreadable file has none."""
    found: list[str] = []
    for text in _data_of(fact):
        try:
            document = yaml.safe_load(str(text))
        except yaml.YAMLError:
            continue
        sources = rows_at(document, "networkTopologyDiscovery")
        found += [str(row.get("source")) for row in sources if row.get("enabled")]
    return found


def _parse_time(value: object) -> datetime | None:
    return parse_observed_at(value) if isinstance(value, str) else None


def _show_age(age: timedelta) -> str:
    seconds = int(age.total_seconds())
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            return show_count(seconds // size, unit)
    return show_count(seconds, "second")


def _check_agent_pods(rows: Sequence[AgentSetFact], cluster: _Cluster) -> Iterator[Check]:
    """Yield whether each node that should have an agent has a ready one."""
    wanted = {row.name: row.num_wanted for row in rows}
    for row in rows:
        message = f"{show(row.name)}: {row.num_ready} of {show_count(row.num_wanted, 'pod')} ready"
        if row.num_ready < row.num_wanted:
            fix = f"kubectl -n {cluster.namespace} describe daemonset {show(row.name)}"
            yield _warning(message, fix)
        elif row.num_wanted or wanted.get(_name_twin(row.name)):
            yield _ok(message)
        else:
            fix = "compare the labels of the nodes with the node selectors in the chart's values"
            yield _warning(f"{show(row.name)}: no node is selected", fix)


def _name_twin(name: str) -> str:
    """Return the name of the other DaemonSet, with its prefix and suffix; empty without one."""
    part = next((part for part in _TWINS if part in name), "")
    return name.replace(part, _TWINS[part], 1) if part and _TWINS[part] else ""


def _check_rights(rights: RightsFact | None, _: _Cluster) -> Iterator[Check]:
    """Yield whether the generator's account may do what it does; nothing without an account."""
    if rights is None:
        return
    name, refused = show(rights.account.name), rights.refused
    if not refused:
        yield _ok(f"{name} may do all that it does")
        return
    shown = list_some(list(dict.fromkeys(map(str, refused))), _MAX_RIGHTS)
    fix = (
        "name the outputs in generator.outputs of the chart, and upgrade it; then: kubectl auth "
        f"can-i {refused[0]} --as {show(rights.account.user)}"
    )
    yield _error(f"{name} may not: {shown}", fix)


def _check_certificate(found: CertificateFact | None, cluster: _Cluster) -> Iterator[Check]:
    """Yield how long the certificate of the placement service is valid; nothing without TLS."""
    if found is None:
        return
    name = f"Secret {show(found.secret, 253)}"
    look = f"kubectl -n {cluster.namespace} get certificate,secret; see docs/install.md"
    if found.expires is None:
        yield _error(f"{name} is missing or has no certificate", look)
    elif found.expires <= cluster.now:
        yield _error(f"{name} expired on {found.expires:%Y-%m-%d}", look)
    elif found.expires - cluster.now < _EXPIRY_NOTICE:
        yield _warning(f"{name} expires on {found.expires:%Y-%m-%d}", look)
    else:
        yield _ok(f"{name} is valid until {found.expires:%Y-%m-%d}")


def _check_policies(policies: Sequence[PolicyFact] | None, cluster: _Cluster) -> Iterator[Check]:
    """Yield whether each policy is there, denies, and limits the accounts in use.

    A policy that names another account than the one in use refuses nothing, and the API server does
    not report it: https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/1317.

    Yields nothing if the cluster has neither accounts nor policies of Toponaut.
    """
    facts = cluster.facts
    accounts = {role: _list_accounts(facts, role) for role in POLICIES}
    if not policies and not any(accounts.values()):
        return
    problems = [row for role in POLICIES for row in _list_problems(facts, role, accounts[role])]
    missing = [name for name, problem in problems if problem == _MISSING]
    if missing:
        yield _error(f"missing: {', '.join(missing)}", _INSTALL)
    for name, problem in problems:
        if problem not in {"", _MISSING}:
            yield _error(f"{show(name)} {problem}", f"{_LOOK}; {_INSTALL}")
    if not any(problem for _, problem in problems):
        shown = _show_accounts({row for rows in accounts.values() for row in rows})
        yield _ok(f"{len(problems)} policies limit {shown}")


def _list_accounts(facts: ClusterFacts, role: str) -> frozenset[Account]:
    """Return the accounts in use: those of the pods, and those to which the role is given."""
    bindings: Sequence[RoleBindingFact] = facts.role_bindings.value or ()
    given = (row for row in bindings if role in row.role)
    pods: frozenset[Account] = mapping_at(facts.pod_accounts.value).get(role, frozenset())
    return pods | {account for row in given for account in row.accounts}


def _list_problems(
    facts: ClusterFacts, role: str, accounts: frozenset[Account]
) -> Iterator[tuple[str, str]]:
    """Yield each policy of a role, and why it does not hold; empty if it does."""
    policies: Sequence[PolicyFact] = facts.policies.value or ()
    for name in (f"{role}-{end}" for end in POLICIES[role]):
        # Kustomize may have put a prefix or a suffix on each name.
        found = [row for row in policies if name in row.name]
        yield from ((row.name, _find_problem(row, facts, accounts)) for row in found)
        if not found:
            yield name, _MISSING


def _find_problem(policy: PolicyFact, facts: ClusterFacts, accounts: frozenset[Account]) -> str:
    """Return why a policy does not hold for these accounts; empty if the policy holds."""
    if policy.spec.get("failurePolicy") == "Ignore":
        return "lets through what it cannot judge: failurePolicy is Ignore"
    if _narrows(policy.spec.get("matchConstraints")):
        return "does not apply to all objects: matchConstraints has a selector or an exception"
    bindings = [
        row
        for row in facts.policy_bindings.value or ()
        if row.spec.get("policyName") == policy.name
        and "Deny" in (row.spec.get("validationActions") or ())
    ]
    if not bindings:
        return "refuses nothing: no ValidatingAdmissionPolicyBinding with the action Deny names it"
    if all(_narrows(row.spec.get("matchResources")) for row in bindings):
        return (
            f"does not apply to all objects: matchResources of {show(bindings[0].name)} limits it"
        )
    free = frozenset(
        account for account in accounts if not _covers(policy, bindings, facts, account)
    )
    return f"does not limit {_show_accounts(free)}, which is in use" if free else ""


def _narrows(match: object) -> bool:
    """Return whether a match excludes some objects of the policy's kinds.

    It does so by a selector or by excludeResourceRules.
    """
    selectors = (mapping_at(match, key) for key in ("namespaceSelector", "objectSelector"))
    is_bound = any(selector.get(key) for selector in selectors for key in _TERMS)
    return is_bound or bool(mapping_at(match).get("excludeResourceRules"))


def _covers(
    policy: PolicyFact, bindings: Sequence[PolicyFact], facts: ClusterFacts, account: Account
) -> bool:
    """Return whether a policy covers the requests of an account.

    A policy finds the account in the subjects of a ClusterRoleBinding. Older policies, and those
    that somebody edited, name it as text.
    """
    conditions = rows_at(policy.spec, "matchConditions")
    expressions = [str(row.get("expression")) for row in conditions]
    reads_params = any("params" in expression for expression in expressions)
    if "paramKind" not in policy.spec or not reads_params:
        quoted = {text for expression in expressions for text in re.split(r"[\"']", expression)}
        return account.user in quoted
    for binding in bindings:
        reference = mapping_at(binding.spec, "paramRef")
        for row in facts.role_bindings.value or ():
            is_subject = account in row.accounts or account.groups & row.groups
            if is_subject and _selects(reference, row):
                return True
    return False


def _selects(reference: Mapping[str, Any], row: RoleBindingFact) -> bool:
    if "name" in reference:
        return bool(reference["name"] == row.name)
    wanted = mapping_at(reference, "selector", "matchLabels")
    return bool(wanted) and wanted.items() <= row.labels.items()


def _show_accounts(accounts: frozenset[Account] | set[Account]) -> str:
    return list_some(sorted(map(str, accounts)), _MAX_ACCOUNTS)


_CHECKS: Final[Sequence[tuple[str, Sequence[str], Callable[[Any, _Cluster], Iterator[Check]]]]] = (
    ("Kubernetes", ["version"], _check_version),
    ("Toponaut's kinds", ["crds"], _check_own_crds),
    ("Fabric object", ["fabric"], _check_fabric),
    ("Generator", ["lease"], _check_generator),
    ("Rights", ["refused_rights"], _check_rights),
    ("Policies", ["policies", "policy_bindings", "role_bindings"], _check_policies),
    ("Certificate", ["certificate"], _check_certificate),
    ("Agent pods", ["agent_sets"], _check_agent_pods),
    ("Agents", ["reports"], _check_reports),
    ("Collectors", ["reports"], _check_collectors),
    ("InfiniBand sweeps", ["fabric"], _check_sweepers),
    ("Outputs", ["crds"], _check_outputs),
    ("Volcano's scheduler", ["crds"], _check_scheduler),
    ("Volcano's discovery", ["crds"], _check_discovery),
)
"""Per check its subject, the facts that it depends on, and what judges the first of them."""
