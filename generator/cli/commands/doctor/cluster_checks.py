"""The checks of a cluster: what works, what does not, and the command that mends it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import yaml

from generator.cli.commands.doctor.facts import (
    ClusterFacts,
    CrdFact,
    Fact,
    ReportFact,
    as_mapping,
    as_rows,
    list_outputs,
)
from generator.cli.commands.doctor.install_checks import (
    check_agent_pods,
    check_certificate,
    check_rights,
)
from generator.cli.commands.doctor.policy_checks import check_policies
from generator.cli.output import list_nodes, show_count
from generator.kube.resources import FABRICS, HYPERNODES, RECORDS, REPORTS, RESERVATIONS
from generator.objects.fabric import ConditionType
from generator.objects.outputs import OutputType
from generator.reconcile.kinds import (
    CLUSTER_NETWORK_TOPOLOGIES,
    CLUSTER_TOPOLOGY_BINDINGS,
    KAI_TOPOLOGIES,
    KUEUE_TOPOLOGIES,
    NODE_FEATURES,
)
from runtime.checks import Check, Outcome
from topology.model.errors import show
from topology.reports.observed_time import parse_observed_at

_OWN_KINDS: Final = (REPORTS, FABRICS, RECORDS, RESERVATIONS)
_OUTPUT_KINDS: Final = {
    OutputType.HYPERNODE: ("Volcano", HYPERNODES),
    OutputType.KUEUE: ("Kueue", KUEUE_TOPOLOGIES),
    OutputType.KAI: ("KAI", KAI_TOPOLOGIES),
    OutputType.KOORDINATOR: ("Koordinator", CLUSTER_NETWORK_TOPOLOGIES),
    OutputType.GROVE: ("Grove", CLUSTER_TOPOLOGY_BINDINGS),
    OutputType.NFD: ("Node Feature Discovery", NODE_FEATURES),
}
"""Per output its system, and the kind that it needs."""
_GOOD: Final[Mapping[str, str]] = {
    ConditionType.READY: "True",
    ConditionType.DEGRADED: "False",
    ConditionType.CHANGE_BLOCKED: "False",
    ConditionType.OUTPUTS_WRITTEN: "True",
}
"""The status of each condition of a Fabric object if nothing is wrong."""
_MIN_MINOR: Final = 30
"""Kubernetes 1.30 is the first with ValidatingAdmissionPolicy, which limits the agents."""
_LEASE_SPARE_S: Final = 5
_OLD_REPORTS: Final = timedelta(hours=8)
"""An agent writes its status at least every 7 hours."""
_MAX_SKEW: Final = timedelta(minutes=1)
_PLUGIN: Final = "network-topology-aware"
_INSTALL: Final = "install or upgrade the chart: see docs/install.md"


def check_cluster(facts: ClusterFacts, *, now: datetime, namespace: str) -> list[Check]:
    """Return the checks in the order in which a person would mend them.

    Args:
        facts: of the cluster.
        now: with a time zone.
        namespace: of Toponaut.
    """
    outputs = list_outputs(facts.fabric)
    return [
        _check_version(facts.version),
        *_check_own_crds(facts.crds),
        *_check_fabric(facts.fabric),
        _check_generator(facts.lease, now=now, namespace=namespace),
        *check_rights(facts.refused_rights),
        *check_policies(facts),
        *check_certificate(facts.certificate, now=now, namespace=namespace),
        *check_agent_pods(facts.agent_sets, namespace=namespace),
        *_check_reports(facts, now=now, namespace=namespace),
        *_check_collectors(facts.reports, namespace=namespace),
        *_check_sweepers(facts.fabric, facts.reports),
        *_check_outputs(facts.crds, outputs),
        *_check_volcano(facts, outputs),
    ]


def _unknown(subject: str, fact: Fact) -> Check:
    return Check(subject, Outcome.UNKNOWN, f"cannot be read: {show(fact.problem, 400)}")


def _check_version(fact: Fact) -> Check:
    subject = "Kubernetes"
    if not isinstance(fact.value, Mapping):
        return _unknown(subject, fact)
    text = show(str(fact.value.get("gitVersion", "")))
    minor = "".join(char for char in str(fact.value.get("minor", "")) if char.isdigit())
    if minor and int(minor) < _MIN_MINOR:
        message = f"{text}; admission policies, which limit what agents write, need 1.{_MIN_MINOR}"
        return Check(subject, Outcome.WARNING, message, "upgrade the cluster")
    return Check(subject, Outcome.OK, text)


def _check_own_crds(fact: Fact) -> Iterator[Check]:
    subject = "Toponaut's kinds"
    if fact.value is None:
        yield _unknown(subject, fact)
        return
    crds: Mapping[str, CrdFact] = fact.value
    versions = {kind.crd_name: kind.version for kind in _OWN_KINDS}
    shown_versions = ", ".join(sorted(set(versions.values())))
    missing = [name for name in versions if name not in crds]
    unusable = [
        name
        for name, version in versions.items()
        if name in crds and not (crds[name].is_established and version in crds[name].served)
    ]
    if missing:
        yield Check(subject, Outcome.ERROR, f"missing: {', '.join(missing)}", _INSTALL)
    if unusable:
        message = f"not established, or {shown_versions} is not served: {', '.join(unusable)}"
        yield Check(subject, Outcome.ERROR, message, f"kubectl describe crd {unusable[0]}")
    if not missing and not unusable:
        yield Check(subject, Outcome.OK, f"{len(versions)} kinds, {shown_versions}")


def _check_fabric(fact: Fact) -> Iterator[Check]:
    subject = "Fabric object"
    if fact.problem:
        yield _unknown(subject, fact)
        return
    if fact.value is None:
        yield Check(subject, Outcome.WARNING, "there is none, so the defaults apply", _INSTALL)
        return
    status = as_mapping(as_mapping(fact.value).get("status"))
    conditions = [as_mapping(row) for row in as_rows(status.get("conditions"))]
    for row in conditions:
        wanted = _GOOD.get(str(row.get("type")), "True")
        if row.get("status") == wanted:
            continue
        outcome = Outcome.ERROR if row.get("type") == ConditionType.READY else Outcome.WARNING
        message = f"{row.get('type')} is {row.get('status')}: {row.get('message', '')}"
        fix = "toponaut plan --kube, then toponaut approve HASH --kube"
        is_held = row.get("type") == ConditionType.CHANGE_BLOCKED
        yield Check(
            subject,
            outcome,
            show(message, 600),
            fix if is_held else "kubectl describe fabric default",
        )
    if not conditions:
        message = "it has no status: no generator has written one yet"
        yield Check(subject, Outcome.WARNING, message, "see the line of the generator")
    elif all(row.get("status") == _GOOD.get(str(row.get("type")), "True") for row in conditions):
        yield Check(subject, Outcome.OK, "Ready")


def _check_generator(fact: Fact, *, now: datetime, namespace: str) -> Check:
    subject = "Generator"
    look = f"kubectl -n {namespace} get pods,leases"
    if fact.problem:
        return _unknown(subject, fact)
    if fact.value is None:
        message = f"no generator has run: namespace {show(namespace)} has no Lease of it"
        return Check(subject, Outcome.ERROR, message, f"{look}; --namespace names another one")
    spec = as_mapping(as_mapping(fact.value).get("spec"))
    holder, renewed = str(spec.get("holderIdentity") or ""), _parse_time(spec.get("renewTime"))
    duration_s = spec.get("leaseDurationSeconds")
    if not holder or renewed is None or not isinstance(duration_s, int):
        return Check(subject, Outcome.ERROR, "no replica leads", look)
    age = now - renewed
    if age > timedelta(seconds=duration_s + _LEASE_SPARE_S):
        message = f"{holder} led last, {_show_age(age)} ago, and nobody leads now"
        return Check(subject, Outcome.ERROR, show(message), look)
    if age < -_MAX_SKEW:
        message = f"its Lease was renewed {_show_age(-age)} ahead of this machine's clock"
        return Check(subject, Outcome.WARNING, message, "synchronize the clocks (chronyc tracking)")
    return Check(subject, Outcome.OK, f"{show(holder)} leads")


def _check_reports(facts: ClusterFacts, *, now: datetime, namespace: str) -> Iterator[Check]:
    subject = "Agents"
    look = f"kubectl -n {namespace} get pods -o wide; on a node: toponaut-agent doctor"
    if facts.reports.value is None:
        yield _unknown(subject, facts.reports._replace(problem=facts.reports.problem or "missing"))
        return
    reports: Sequence[ReportFact] = facts.reports.value
    by_name = {row.name: row for row in reports}
    if not reports:
        yield Check(subject, Outcome.ERROR, "no agent has written a report", look)
        return
    nodes: Sequence[str] = facts.nodes.value or ()
    silent = [node for node in nodes if node not in by_name]
    times = {row.name: _parse_time(row.observed_at) for row in reports if row.name in set(nodes)}
    old = [name for name, time in times.items() if time is None or now - time > _OLD_REPORTS]
    ahead = [name for name, time in times.items() if time is not None and time - now > _MAX_SKEW]
    count = f"{len(nodes) - len(silent)} of {show_count(len(nodes), 'node')} have a report"
    if facts.nodes.value is None:
        yield Check(subject, Outcome.OK, f"{show_count(len(reports), 'report')}")
    elif silent:
        yield Check(subject, Outcome.WARNING, f"{count}; not {list_nodes(silent, '')}", look)
    else:
        yield Check(subject, Outcome.OK, count)
    if old:
        age = _show_age(_OLD_REPORTS)
        message = f"reports without a time, or of more than {age} ago: {list_nodes(old, '')}"
        yield Check(subject, Outcome.WARNING, message, look)
    if ahead:
        message = f"reports dated ahead of this machine's clock: {list_nodes(ahead, '')}"
        fix = "synchronize the clocks (chronyc tracking)"
        yield Check(subject, Outcome.WARNING, message, fix)


def _check_collectors(fact: Fact, *, namespace: str) -> Iterator[Check]:
    """Yield the collectors that fail, each with its nodes and the message of one of them."""
    subject = "Collectors"
    reports: Sequence[ReportFact] = fact.value or ()
    messages: dict[str, dict[str, str]] = {}
    for report in reports:
        for name, message in report.failures:
            messages.setdefault(name, {})[report.name] = message
    fix = f"on a node: toponaut-agent doctor, or: kubectl -n {namespace} logs POD"
    for name, by_node in sorted(messages.items()):
        node, message = next(iter(by_node.items()))
        where = f"{show_count(len(by_node), 'report')} ({list_nodes(list(by_node), '')})"
        text = f"{show(name)} fails in {where}; {show(node)}: {show(message, 300)}"
        yield Check(subject, Outcome.WARNING, text, fix)
    if reports and not messages:
        yield Check(subject, Outcome.OK, "none fails")


def _check_sweepers(fact: Fact, reports: Fact) -> Iterator[Check]:
    subject = "InfiniBand sweeps"
    if fact.value is None:
        return
    status = as_mapping(as_mapping(fact.value).get("status"))
    rows = [as_mapping(row) for row in as_rows(status.get("sweepers"))]
    hosts = [report.name for report in reports.value or () if report.num_infiniband]
    if not rows and hosts:
        message = f"no node sweeps, although hosts report InfiniBand ports: {list_nodes(hosts, '')}"
        fix = "label at least two nodes of each subnet as sweepers: see docs/install.md"
        yield Check(subject, Outcome.WARNING, message, fix)
        return
    if not rows:
        yield Check(subject, Outcome.OK, "no node sweeps: no host reports an InfiniBand subnet")
        return
    subnets = {str(row.get("subnet")) for row in rows}
    nodes = ", ".join(sorted({show(str(row.get("node"))) for row in rows}))
    yield Check(subject, Outcome.OK, f"{show_count(len(subnets), 'subnet')}: {nodes}")


def _check_outputs(crds: Fact, outputs: frozenset[str]) -> Iterator[Check]:
    if crds.value is None:
        return
    for output, (system, kind) in _OUTPUT_KINDS.items():
        crd = kind.crd_name
        is_installed = crd in crds.value
        if output in outputs and not is_installed:
            message = f"spec.outputs has {output}, but the cluster has no {crd}"
            fix = f"install {system}, or remove {output} from spec.outputs of the Fabric object"
            yield Check(system, Outcome.ERROR, message, fix)
        elif output in outputs:
            yield Check(system, Outcome.OK, f"installed, and spec.outputs has {output}")
        elif is_installed:
            message = f"installed, but gets nothing from Toponaut: spec.outputs has no {output}"
            fix = f"add `type: {output}` to spec.outputs: see docs/consumers.md"
            yield Check(system, Outcome.WARNING, message, fix)


def _check_volcano(facts: ClusterFacts, outputs: frozenset[str]) -> Iterator[Check]:
    """Yield whether Volcano's scheduler reads HyperNodes, and no other program writes them."""
    has_kind = facts.crds.value and HYPERNODES.crd_name in facts.crds.value
    if not has_kind or OutputType.HYPERNODE not in outputs:
        return
    subject = "Volcano's scheduler"
    if facts.scheduler_config.value is None:
        yield _unknown(subject, _or_missing(facts.scheduler_config, "its ConfigMap is not there"))
    elif _PLUGIN in _data_of(facts.scheduler_config):
        yield Check(subject, Outcome.OK, f"uses the plugin {_PLUGIN}")
    else:
        message = f"does not use the plugin {_PLUGIN}, so HyperNodes have no effect"
        fix = "add it to the tiers in the ConfigMap volcano-scheduler-configmap"
        yield Check(subject, Outcome.ERROR, message, fix)
    subject = "Volcano's discovery"
    if facts.controller_config.value is None:
        yield Check(subject, Outcome.OK, "not configured")
        return
    active = _find_active_discovery(facts.controller_config)
    if active:
        message = f"is on ({', '.join(map(show, active))}): nodes would be in two trees"
        fix = "set enabled: false in networkTopologyDiscovery of volcano-controller-configmap"
        yield Check(subject, Outcome.ERROR, message, fix)
    else:
        yield Check(subject, Outcome.OK, "is off")


def _or_missing(fact: Fact, text: str) -> Fact:
    return fact if fact.problem else Fact(problem=text)


def _data_of(fact: Fact) -> str:
    return "\n".join(
        str(value) for value in as_mapping(as_mapping(fact.value).get("data")).values()
    )


def _find_active_discovery(fact: Fact) -> list[str]:
    """Return the sources of Volcano's own discovery that are on; an unreadable file has none."""
    found: list[str] = []
    for text in as_mapping(as_mapping(fact.value).get("data")).values():
        try:
            document = as_mapping(yaml.safe_load(str(text)))
        except yaml.YAMLError:
            continue
        for row in as_rows(document.get("networkTopologyDiscovery")):
            source = as_mapping(row)
            if source.get("enabled"):
                found.append(str(source.get("source")))
    return found


def _parse_time(value: object) -> datetime | None:
    return parse_observed_at(value) if isinstance(value, str) else None


def _show_age(age: timedelta) -> str:
    seconds = int(age.total_seconds())
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            return show_count(seconds // size, unit)
    return show_count(seconds, "second")
