"""What `toponaut doctor` says about a cluster; `tests/kube/test_doctor.py` asks a real one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from generator.cli.commands.programs.doctor.checks import POLICIES, check_cluster
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
)
from generator.cli.commands.programs.doctor.rights import Right
from runtime.checks import Check, Outcome

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
OWN = ("neighborreports", "fabrics", "treerecords", "placementreservations")
HYPERNODES = "hypernodes.topology.volcano.sh"
GOOD_CRD = CrdFact(frozenset({"v1alpha1"}), is_established=True)
CRDS = {f"{plural}.toponaut.io": GOOD_CRD for plural in OWN} | {HYPERNODES: GOOD_CRD}


def stamp(age: timedelta = timedelta()) -> str:
    return (NOW - age).isoformat()


def lease(**spec: object) -> Fact:
    good = {"holderIdentity": "pod-1", "renewTime": stamp(), "leaseDurationSeconds": 15}
    return Fact({"spec": good | spec})


def fabric(*conditions: tuple[str, str], **spec: object) -> Fact:
    rows = [
        {"type": kind, "status": status, "message": f"why {kind}"}
        for kind, status in conditions or [("Ready", "True")]
    ]
    return Fact({"spec": spec, "status": {"conditions": rows}})


def reports(*rows: tuple[str, timedelta]) -> Fact:
    return Fact(tuple(ReportFact(name, stamp(age)) for name, age in rows))


def config(text: str) -> Fact:
    return Fact({"data": {"any.conf": text}})


AGENT, GENERATOR = (Account("toponaut-system", role) for role in POLICIES)
FOREIGN = Account("other", "toponaut-agent")
ROLE_BINDINGS = Fact(
    tuple(
        RoleBindingFact(
            one.name, {"toponaut.io/account": one.name}, one.name, frozenset({one}), frozenset()
        )
        for one in (AGENT, GENERATOR)
    )
)
OWN_REPORTS = "toponaut-agent-own-reports"


def policies(**changes: object) -> Fact:
    """Return the policies, with other fields of the one about the reports of an agent."""
    spec = {
        "failurePolicy": "Fail",
        "paramKind": {"kind": "ClusterRoleBinding"},
        "matchConditions": [{"name": "agent", "expression": "params.subjects.exists(one, true)"}],
    }
    changed = {key: value for key, value in (spec | changes).items() if value is not ...}
    names = [f"{role}-{end}" for role, ends in POLICIES.items() for end in ends]
    return Fact(tuple(PolicyFact(name, changed if name == OWN_REPORTS else spec) for name in names))


def policy_bindings(**changes: object) -> Fact:
    """Return their bindings, with other fields of that of the same policy."""
    rows = []
    for role, ends in POLICIES.items():
        labels = {"toponaut.io/account": role}
        spec = {"validationActions": ["Deny"], "paramRef": {"selector": {"matchLabels": labels}}}
        for name in (f"{role}-{end}" for end in ends):
            more = changes if name == OWN_REPORTS else {}
            rows.append(PolicyFact(name, spec | {"policyName": name} | more))
    return Fact(tuple(rows))


def sets(**num_wanted: int) -> Fact:
    """Return DaemonSets of agents, all of whose pods are ready."""
    rows = {name.replace("_", "-"): number for name, number in num_wanted.items()}
    return Fact(tuple(AgentSetFact(f"toponaut-{name}", num, num) for name, num in rows.items()))


def text_condition(account: Account) -> list[dict[str, str]]:
    return [{"name": "agent", "expression": f"request.userInfo.username == '{account.user}'"}]


UNREADABLE = Fact(problem="403 forbidden")
HEALTHY = ClusterFacts(
    version=Fact({"gitVersion": "v1.36.3", "minor": "36"}),
    crds=Fact(CRDS),
    fabric=fabric(),
    lease=lease(),
    nodes=Fact(("n1", "n2")),
    reports=reports(("n1", timedelta()), ("n2", timedelta())),
    agent_sets=Fact((AgentSetFact("toponaut-agent", 2, 2),)),
    refused_rights=Fact(RightsFact(GENERATOR, ())),
    policies=policies(),
    policy_bindings=policy_bindings(),
    role_bindings=ROLE_BINDINGS,
    pod_accounts=Fact({one.name: frozenset({one}) for one in (AGENT, GENERATOR)}),
    certificate=Fact(CertificateFact("tls", NOW + timedelta(days=60))),
    scheduler_config=config("tiers: [{plugins: [{name: network-topology-aware}]}]"),
    controller_config=Fact(),
)


def faults(facts: ClusterFacts) -> list[Check]:
    checks = check_cluster(facts, now=NOW, namespace="toponaut-system")
    return [row for row in checks if row.outcome is not Outcome.OK]


def test_a_healthy_cluster_has_only_good_lines() -> None:
    assert faults(HEALTHY) == []


@pytest.mark.parametrize(
    ("change", "outcome", "subject", "says"),
    [
        pytest.param(
            {"version": Fact({"gitVersion": "v1.29.1", "minor": "29+"})},
            *(Outcome.WARNING, "Kubernetes", "v1.29.1"),
            id="an old API server",
        ),
        pytest.param(
            {"agent_sets": Fact((AgentSetFact("toponaut-agent", 4, 3),))},
            *(Outcome.WARNING, "Agent pods", "toponaut-agent: 3 of 4 pods ready"),
            id="an agent that is not ready",
        ),
        pytest.param(
            {
                "reports": Fact(
                    tuple(
                        ReportFact(name, stamp(), (("nvlink", f"no nvidia-smi on {name}"),))
                        for name in ("n1", "n2")
                    )
                )
            },
            *(Outcome.WARNING, "Collectors", "nvlink fails in 2 reports (n[1-2]); n1: no nvidia"),
            id="a collector that fails",
        ),
        pytest.param(
            {"reports": Fact(tuple(ReportFact(n, stamp(), (), 8) for n in ("n1", "n2")))},
            *(Outcome.WARNING, "InfiniBand sweeps", "although hosts report InfiniBand ports: n"),
            id="InfiniBand that no node sweeps",
        ),
        pytest.param(
            {"agent_sets": Fact((AgentSetFact("toponaut-agent", 0, 0),))},
            *(Outcome.WARNING, "Agent pods", "toponaut-agent: no node is selected"),
            id="agents for no node",
        ),
        pytest.param(
            {"agent_sets": sets(agent=2, agent_gpu=0)},
            *(Outcome.WARNING, "Agent pods", "toponaut-agent-gpu: no node is selected"),
            id="a RuntimeClass for no node",
        ),
        pytest.param(
            {
                "agent_sets": Fact(
                    (
                        AgentSetFact("a-toponaut-agent-b", 2, 2),
                        AgentSetFact("a-toponaut-agent-gpu-b", 0, 0),
                    )
                )
            },
            *(Outcome.WARNING, "Agent pods", "a-toponaut-agent-gpu-b: no node is selected"),
            id="a RuntimeClass for no node, with other names",
        ),
        pytest.param(
            {"agent_sets": sets(agent=2, sweeper=0)},
            *(Outcome.WARNING, "Agent pods", "toponaut-sweeper: no node is selected"),
            id="sweepers without a labelled node",
        ),
        pytest.param(
            {"refused_rights": Fact(RightsFact(GENERATOR, (Right("", "nodes", "patch"),)))},
            *(Outcome.ERROR, "Rights", "toponaut-generator may not: patch nodes"),
            id="a missing right",
        ),
        pytest.param(
            {"policies": Fact(policies().value[1:])},
            *(Outcome.ERROR, "Policies", f"missing: {OWN_REPORTS}"),
            id="a missing policy",
        ),
        pytest.param(
            {"policies": policies(failurePolicy="Ignore")},
            *(Outcome.ERROR, "Policies", f"{OWN_REPORTS} lets through what it cannot judge"),
            id="a policy that ignores its failures",
        ),
        pytest.param(
            {"policies": policies(matchConstraints={"excludeResourceRules": [{}]})},
            *(Outcome.ERROR, "Policies", "does not apply to all objects"),
            id="a policy with an exception",
        ),
        pytest.param(
            {"policy_bindings": Fact(policy_bindings().value[1:])},
            *(Outcome.ERROR, "Policies", f"{OWN_REPORTS} refuses nothing"),
            id="a policy without a binding",
        ),
        pytest.param(
            {"policy_bindings": policy_bindings(validationActions=["Audit", "Warn"])},
            *(Outcome.ERROR, "Policies", f"{OWN_REPORTS} refuses nothing"),
            id="a binding that only warns",
        ),
        pytest.param(
            {
                "policy_bindings": policy_bindings(
                    matchResources={"objectSelector": {"matchLabels": {"a": "b"}}}
                )
            },
            *(Outcome.ERROR, "Policies", "does not apply to all objects"),
            id="a binding for some objects",
        ),
        pytest.param(
            {"policy_bindings": policy_bindings(paramRef={"name": "toponaut-generator"})},
            *(Outcome.ERROR, "Policies", "does not limit toponaut-system/toponaut-agent"),
            id="a binding with the accounts of another role",
        ),
        pytest.param(
            {"policies": policies(paramKind=..., matchConditions=text_condition(FOREIGN))},
            *(Outcome.ERROR, "Policies", "does not limit toponaut-system/toponaut-agent"),
            id="a policy that names another account as text",
        ),
        pytest.param(
            {"policies": policies(matchConditions=text_condition(FOREIGN))},
            *(Outcome.ERROR, "Policies", "does not limit toponaut-system/toponaut-agent"),
            id="a policy that ignores its parameter",
        ),
        pytest.param(
            {"certificate": Fact(CertificateFact("tls", NOW - timedelta(days=1)))},
            *(Outcome.ERROR, "Certificate", "Secret tls expired on 2026-10-31"),
            id="an expired certificate",
        ),
        pytest.param(
            {"certificate": Fact(CertificateFact("tls", NOW + timedelta(days=13)))},
            *(Outcome.WARNING, "Certificate", "Secret tls expires on 2026-11-14"),
            id="a certificate that expires soon",
        ),
        pytest.param(
            {"certificate": Fact(CertificateFact("tls", None))},
            *(Outcome.ERROR, "Certificate", "Secret tls is missing or has no certificate"),
            id="a Secret without a certificate",
        ),
        pytest.param(
            {"crds": Fact({name: row for name, row in CRDS.items() if "fabrics" not in name})},
            *(Outcome.ERROR, "Toponaut's kinds", "missing: fabrics.toponaut.io"),
            id="a missing kind",
        ),
        pytest.param(
            {"crds": Fact(CRDS | {"fabrics.toponaut.io": GOOD_CRD._replace(served=frozenset())})},
            *(Outcome.ERROR, "Toponaut's kinds", "v1alpha1 is not served: fabrics.toponaut.io"),
            id="a kind of another version",
        ),
        pytest.param({"fabric": Fact()}, Outcome.WARNING, "Fabric object", "none", id="no Fabric"),
        pytest.param(
            {"fabric": Fact({"metadata": {}})},
            *(Outcome.WARNING, "Fabric object", "no status"),
            id="a Fabric without a status",
        ),
        pytest.param(
            {"fabric": fabric(("Ready", "False"))},
            *(Outcome.ERROR, "Fabric object", "Ready is False: why Ready"),
            id="a Fabric that is not ready",
        ),
        pytest.param(
            {"fabric": fabric(("Ready", "True"), ("ChangeBlocked", "True"))},
            *(Outcome.WARNING, "Fabric object", "ChangeBlocked is True"),
            id="a held plan",
        ),
        pytest.param({"lease": Fact()}, Outcome.ERROR, "Generator", "no Lease", id="no Lease"),
        pytest.param(
            {"lease": lease(holderIdentity="")},
            *(Outcome.ERROR, "Generator", "no replica leads"),
            id="a Lease without a holder",
        ),
        pytest.param(
            {"lease": lease(renewTime=stamp(timedelta(minutes=5)))},
            *(Outcome.ERROR, "Generator", "5 minutes ago"),
            id="a Lease that is over",
        ),
        pytest.param(
            {"lease": lease(renewTime=stamp(-timedelta(hours=2)))},
            *(Outcome.WARNING, "Generator", "2 hours ahead"),
            id="a clock that is behind",
        ),
        pytest.param({"reports": reports()}, Outcome.ERROR, "Agents", "no agent", id="no report"),
        pytest.param(
            {"reports": reports(("n1", timedelta()))},
            *(Outcome.WARNING, "Agents", "1 of 2 nodes have a report; not n2"),
            id="a node without a report",
        ),
        pytest.param(
            {"reports": reports(("n1", timedelta()), ("n2", timedelta(days=2)))},
            *(Outcome.WARNING, "Agents", "n2"),
            id="an old report",
        ),
        pytest.param(
            {"reports": reports(("n1", timedelta()), ("n2", -timedelta(hours=1)))},
            *(Outcome.WARNING, "Agents", "ahead of this machine's clock: n2"),
            id="a report from the future",
        ),
        pytest.param(
            {"crds": Fact({name: row for name, row in CRDS.items() if name != HYPERNODES})},
            *(Outcome.ERROR, "Volcano", "spec.outputs has hypernode"),
            id="no Volcano, which is the default output",
        ),
        pytest.param(
            {"crds": Fact(CRDS | {"topologies.kueue.x-k8s.io": GOOD_CRD})},
            *(Outcome.WARNING, "Kueue", "spec.outputs has no kueue"),
            id="Kueue that gets nothing",
        ),
        pytest.param(
            {"scheduler_config": config("tiers: []")},
            *(Outcome.ERROR, "Volcano's scheduler", "network-topology-aware"),
            id="a scheduler without the plugin",
        ),
        pytest.param(
            {"scheduler_config": Fact()},
            *(Outcome.UNKNOWN, "Volcano's scheduler", "not there"),
            id="a scheduler elsewhere",
        ),
        pytest.param(
            {
                "controller_config": config(
                    "networkTopologyDiscovery: [{source: ufm, enabled: true}, {source: label}]"
                )
            },
            *(Outcome.ERROR, "Volcano's discovery", "is on (ufm)"),
            id="Volcano's own discovery",
        ),
    ],
)
def test_a_fault_is_a_line_that_says_what_to_do(
    change: dict[str, Fact], outcome: Outcome, subject: str, says: str
) -> None:
    (found,) = faults(replace(HEALTHY, **change))
    assert (found.outcome, found.subject) == (outcome, subject)
    assert says in found.message
    assert found.fix or outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("value", [None, 1, "text", [], {"spec": 1, "status": [], "data": 3}])
def test_objects_of_any_form_cost_no_traceback(value: object) -> None:
    odd: Any = Fact(value)
    rows: Any = Fact((ReportFact("n1", "yesterday"),))
    facts = replace(HEALTHY, fabric=odd, lease=odd, version=odd, reports=rows)
    assert faults(facts)
    assert check_cluster(
        replace(facts, scheduler_config=odd, controller_config=odd), now=NOW, namespace="x"
    )


def test_a_cluster_that_may_not_be_read_is_unknown_and_not_broken() -> None:
    names = ("version", "crds", "fabric", "lease", "nodes", "reports")
    found = faults(replace(HEALTHY, **dict.fromkeys(names, UNREADABLE)))
    assert [(row.outcome, row.subject) for row in found] == [
        (Outcome.UNKNOWN, subject)
        for subject in ("Kubernetes", "Toponaut's kinds", "Fabric object", "Generator", "Agents")
    ]


def test_nodes_and_sweepers_may_all_be_of_one_kind() -> None:
    for found in (
        sets(agent=0, agent_gpu=2),
        sets(agent=2, agent_gpu=2, sweeper=0, sweeper_gpu=2),
        sets(agent=2, agent_gpu=2, sweeper=2, sweeper_gpu=0),
    ):
        assert faults(replace(HEALTHY, agent_sets=found)) == []


def test_it_names_each_policy_that_does_not_limit_an_account_in_use() -> None:
    accounts = Fact({"toponaut-agent": frozenset({AGENT, FOREIGN})})
    found = faults(replace(HEALTHY, pod_accounts=accounts))
    assert [row.message for row in found] == [
        f"toponaut-agent-{end} does not limit other/toponaut-agent, which is in use"
        for end in POLICIES["toponaut-agent"]
    ]


def test_it_knows_whom_a_policy_limits_that_names_its_account_as_text() -> None:
    own = policies(paramKind=..., matchConditions=text_condition(AGENT))
    assert faults(replace(HEALTHY, policies=own)) == []


def test_it_counts_an_account_that_a_group_in_the_binding_contains() -> None:
    agent, generator = ROLE_BINDINGS.value
    group = agent._replace(accounts=frozenset(), groups=AGENT.groups)
    assert faults(replace(HEALTHY, role_bindings=Fact((group, generator)))) == []


def test_an_api_server_without_admission_policies_limits_nobody() -> None:
    (found,) = faults(replace(HEALTHY, policies=Fact(), policy_bindings=Fact()))
    assert (found.outcome, found.message.count(",")) == (Outcome.ERROR, 9)


def test_it_has_no_line_about_policies_where_nothing_is_installed() -> None:
    nothing = replace(HEALTHY, policies=Fact(()), role_bindings=Fact(()), pod_accounts=Fact())
    found = check_cluster(nothing, now=NOW, namespace="toponaut-system")
    assert "Policies" not in {row.subject for row in found}
