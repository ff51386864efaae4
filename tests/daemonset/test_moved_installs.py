"""The policies on a real API server after Toponaut was moved to another namespace, or renamed.

Kustomize changes the namespace of objects and of the subjects of bindings, and no text in CEL. A
policy that names its account as text then limits nobody, and nothing says so: see
https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/1317 for such a policy. Kustomize
also gives policies a namespace that they cannot have:
https://github.com/kubernetes-sigs/kustomize/issues/6051.
"""

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from generator.kube.resources import (
    CONFIG_MAPS,
    FABRICS,
    HYPERNODES,
    LEASES,
    NODES,
    REPORTS,
    RESERVATIONS,
)
from tests.daemonset.callers import Caller, make_node, named, on_node
from tests.daemonset.clusters import bare_cluster
from tests.daemonset.test_doctor import changed
from tests.daemonset.test_generator_rights import fabric, hypernode, make_event
from tests.daemonset.tools import CHART, NAMESPACE, find_tool, run
from tests.generator.scenes import run as run_command
from tests.kube.examples import made
from tests.lab.api_server import MERGE, Answer, ApiServer
from tests.lab.wait import wait_until
from tests.repository import ROOT

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("chart")]
MANIFESTS: Final = ROOT / "daemonset" / "manifests"
_ROLES: Final = "/apis/rbac.authorization.k8s.io/v1"
_POLICIES: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/default/events"
_OTHER: Final = "team"
"""A namespace of somebody else."""


def plain() -> str:
    names = ("namespace.yaml", "crds.yaml", "toponaut.yaml")
    return "---\n".join((MANIFESTS / name).read_text() for name in names)


def chart(home: Path, namespace: str) -> str:
    """Return what Helm renders for a namespace, with the namespace."""
    options = ["--set=sweep.enabled=true,sweep.privileged=true,web.enabled=true"]
    argv = [find_tool("helm"), "template", "toponaut", CHART, f"--namespace={namespace}", *options]
    answer = run(argv, home=home)
    assert answer.returncode == 0, answer.stderr
    head = (MANIFESTS / "namespace.yaml").read_text().replace(NAMESPACE, namespace)
    return f"{head}---\n{answer.stdout}"


def kustomized(home: Path, text: str, *settings: str) -> str:
    """Return what kustomize makes of manifests."""
    folder = home / secrets.token_hex(4)
    folder.mkdir()
    (folder / "all.yaml").write_text(text)
    (folder / "kustomization.yaml").write_text("\n".join(["resources: [all.yaml]", *settings]))
    answer = run([find_tool("kubectl"), "kustomize", folder], home=home)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


FORMS: Final[dict[str, tuple[str, str, Callable[[Path], str]]]] = {
    "plain manifests that kustomize moves": (
        *("a-moved", "toponaut"),
        lambda home: kustomized(home, plain(), "namespace: a-moved"),
    ),
    "plain manifests that kustomize moves and renames": (
        *("b-renamed", "prod-toponaut"),
        lambda home: kustomized(home, plain(), "namespace: b-renamed", "namePrefix: prod-"),
    ),
    "plain manifests that a person edits": (
        *("c-edited", "toponaut"),
        lambda _: plain().replace(NAMESPACE, "c-edited"),
    ),
    "the chart in a namespace of another name": (
        *("d-chart", "toponaut"),
        lambda home: chart(home, "d-chart"),
    ),
    "the chart that kustomize moves after Helm": (
        *("e-post-rendered", "toponaut"),
        lambda home: kustomized(home, chart(home, NAMESPACE), "namespace: e-post-rendered"),
    ),
}


class Moved(NamedTuple):
    """Toponaut in another namespace, and accounts there and elsewhere that have every right."""

    api: ApiServer
    namespace: str
    name: str
    """What the names of the accounts begin with."""
    node: str
    other: str
    """Another node."""
    agent: Caller
    generator: Caller
    strangers: tuple[Caller, Caller]
    """Accounts of the same names in a namespace of somebody else."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with bare_cluster(tmp_path_factory.mktemp("moved")) as found:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _OTHER}}
        found.expect("POST", "/api/v1/namespaces", space)
        yield found


@pytest.fixture(scope="module", params=list(FORMS.values()), ids=list(FORMS))
def moved(
    request: pytest.FixtureRequest, server: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Moved:
    namespace, name, render = request.param
    home = tmp_path_factory.mktemp("home")
    apply(server, render(home), home)
    names = (f"{name}-agent", f"{name}-generator")
    for one in names:
        account = {"metadata": {"name": one}}
        server.request("POST", f"/api/v1/namespaces/{_OTHER}/serviceaccounts", account)
    give_every_right(server, *((space, one) for space in (namespace, _OTHER) for one in names))
    node, other = (str(make_node(server)["metadata"]["name"]) for _ in range(2))
    agent, generator = (on_node(server, one, node, namespace=namespace) for one in names)
    strangers = tuple(on_node(server, one, node, namespace=_OTHER) for one in names)
    both = (strangers[0], strangers[1])
    found = Moved(server, namespace, name, node, other, agent, generator, both)
    wait_until(
        lambda: [name for name in FORBIDDEN if not is_denied(ask_as_account(found, name), name)],
        deadline_s=60,
        what="the policies are in force",
    )
    return found


def apply(api: ApiServer, text: str, home: Path) -> None:
    file = home / "applied.yaml"
    file.write_text(text)
    argv = ["apply", "--server-side", "--force-conflicts", "-f", file]
    answer = run([find_tool("kubectl"), f"--kubeconfig={api.kubeconfig()}", *argv], home=home)
    assert answer.returncode == 0, answer.stderr


def give_every_right(api: ApiServer, *accounts: tuple[str, str]) -> None:
    """Give accounts every right, so that nothing but a policy refuses what they ask."""
    subjects = [
        {"kind": "ServiceAccount", "namespace": namespace, "name": name}
        for namespace, name in accounts
    ]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    metadata = {"name": f"careless-{secrets.token_hex(4)}"}
    binding = {"metadata": metadata, "roleRef": role, "subjects": subjects}
    api.expect("POST", f"{_ROLES}/clusterrolebindings", binding)


def switch_report() -> dict[str, Any]:
    head = {"apiVersion": REPORTS.api_version, "kind": REPORTS.kind}
    return head | {"spec": {"device": {"kind": "switch", "name": "leaf1"}}}


def sweep_part() -> dict[str, Any]:
    head = {"apiVersion": REPORTS.api_version, "kind": REPORTS.kind}
    sweep = {"subnet": "fe80000000000001", "sweepId": "a", "part": 0, "of": 2, "facts": "eJw="}
    return head | {"spec": {"sweep": sweep}}


DRY: Final = "&dryRun=All"


def write_foreign_hypernode(_: Moved, who: Caller) -> Answer:
    return who.apply(HYPERNODES.path("foreign"), hypernode({}), query=DRY)


def raise_the_budget(_: Moved, who: Caller) -> Answer:
    wider = fabric() | {"spec": {"changeBudget": {"nodesPercent": 100}}}
    return who.apply(FABRICS.path("default"), wider, query=DRY)


def write_foreign_lease(moved: Moved, who: Caller) -> Answer:
    path = f"{LEASES.path(namespace=moved.namespace)}?dryRun=All"
    return who.ask("POST", path, {"metadata": {"name": f"theirs-{secrets.token_hex(4)}"}})


def write_event_elsewhere(moved: Moved, who: Caller) -> Answer:
    event = make_event()
    event["metadata"]["namespace"] = moved.namespace
    event["regarding"] |= {"namespace": moved.namespace}
    path = f"/apis/events.k8s.io/v1/namespaces/{moved.namespace}/events?dryRun=All"
    return who.ask("POST", path, event)


def mark_a_node(moved: Moved, who: Caller) -> Answer:
    change = {"metadata": {"labels": {"rack": "r9"}}}
    return who.ask("PATCH", f"{NODES.path(moved.node)}?dryRun=All", change, form=MERGE)


def edit_foreign_config(moved: Moved, who: Caller) -> Answer:
    path = CONFIG_MAPS.path("foreign", namespace=moved.namespace)
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    moved.api.apply(f"{path}?fieldManager=other", named(path, foreign))
    return who.ask("PATCH", f"{path}?dryRun=All", {"data": {"c": "d"}}, form=MERGE)


def delete_live_reservation(moved: Moved, who: Caller) -> Answer:
    wanted = made(RESERVATIONS)
    path = RESERVATIONS.path(wanted["metadata"]["name"])
    moved.api.request("POST", RESERVATIONS.path(), wanted)
    head = {"apiVersion": RESERVATIONS.api_version, "kind": RESERVATIONS.kind}
    status = head | {"status": wanted["status"]}
    moved.api.apply(f"{path}/status?fieldManager=other", named(path, status))
    return who.ask("DELETE", f"{path}?dryRun=All")


Ask = Callable[[Moved, Caller], Answer]
BY_AGENT: Final[dict[str, Ask]] = {
    "toponaut-agent-own-reports": lambda moved, who: who.apply(
        REPORTS.path(moved.other), switch_report(), query=DRY
    ),
    "toponaut-agent-sweeps": lambda moved, who: who.apply(
        REPORTS.path(f"{moved.node}.sweep.0"), sweep_part(), query=DRY
    ),
}
BY_GENERATOR: Final[dict[str, Ask]] = {
    "toponaut-generator-own-hypernodes": write_foreign_hypernode,
    "toponaut-generator-switch-reports": lambda moved, who: who.apply(
        REPORTS.path(moved.node), switch_report(), query=DRY
    ),
    "toponaut-generator-fabric": raise_the_budget,
    "toponaut-generator-lease": write_foreign_lease,
    "toponaut-generator-events": write_event_elsewhere,
    "toponaut-generator-own-labels": mark_a_node,
    "toponaut-generator-own-outputs": edit_foreign_config,
    "toponaut-generator-ended-reservations": delete_live_reservation,
}
FORBIDDEN: Final = BY_AGENT | BY_GENERATOR
"""Per policy a request that it refuses."""


def ask_as_account(moved: Moved, policy: str) -> Answer:
    return FORBIDDEN[policy](moved, moved.agent if policy in BY_AGENT else moved.generator)


def is_denied(answer: Answer, policy: str) -> bool:
    return answer.status == 403 and f"{policy}' with binding" in answer.message


def test_each_policy_has_a_request_that_it_refuses(moved: Moved) -> None:
    found = moved.api.expect("GET", _POLICIES)["items"]
    names = {one["metadata"]["name"] for one in found}
    assert {one.removeprefix("prod-") for one in names} == set(FORBIDDEN)


def test_it_limits_the_accounts_wherever_they_are(moved: Moved) -> None:
    answers = {policy: ask_as_account(moved, policy) for policy in FORBIDDEN}
    free = {name: one.message for name, one in answers.items() if not is_denied(one, name)}
    assert free == {}


def test_it_takes_nothing_from_accounts_of_the_same_names_elsewhere(moved: Moved) -> None:
    answers = {
        policy: ask(moved, moved.strangers[policy in BY_GENERATOR])
        for policy, ask in FORBIDDEN.items()
    }
    assert {one.status for one in answers.values()} <= {200, 201}


def test_an_agent_writes_the_report_of_its_own_node(moved: Moved) -> None:
    own = switch_report() | {"spec": {"device": {"kind": "host", "name": moved.node}}}
    assert moved.agent.apply(REPORTS.path(moved.node), own).status in {200, 201}
    assert moved.api.request("GET", REPORTS.path(moved.other)).status == 404


def ask_doctor(moved: Moved, subject: str) -> list[tuple[str, str]]:
    """Return the outcome and message of each line of doctor with a subject."""
    options = ("--kubeconfig", moved.api.kubeconfig(), "--namespace", moved.namespace)
    rows = run_command("doctor", *options, "-o", "json").document
    return [(row["outcome"], row["message"]) for row in rows if row["subject"] == subject]


def test_doctor_finds_that_the_policies_limit_the_accounts(moved: Moved) -> None:
    """It reads the accounts of the pods where it finds them, and of the bindings in any case."""
    ((outcome, message),) = ask_doctor(moved, "Policies")
    assert outcome == "ok", message
    assert f"{moved.namespace}/" in message


def test_doctor_finds_the_pods_and_the_account_by_any_name(moved: Moved) -> None:
    """Nothing runs pods here, so no node is selected."""
    shown = [message for _, message in ask_doctor(moved, "Agent pods")]
    assert f"{moved.name}-agent: no node is selected" in shown
    rights = ("ok", f"{moved.name}-generator may do all that it does")
    assert ask_doctor(moved, "Rights") == [rights]


def test_a_generator_does_its_work(moved: Moved) -> None:
    lease = {"metadata": {"name": "toponaut-generator"}, "spec": {"holderIdentity": "pod-1"}}
    answers = [
        moved.generator.ask("POST", LEASES.path(namespace=moved.namespace), lease),
        moved.generator.ask("POST", f"{_EVENTS}?dryRun=All", make_event()),
        moved.generator.apply(FABRICS.path("default"), fabric()),
    ]
    assert [(one.status, one.message) for one in answers if one.status not in {200, 201}] == []


def test_a_missing_binding_stops_nobody_else(moved: Moved) -> None:
    """The policies match each write of a Node, a Lease and a ConfigMap in the cluster."""
    path = next(
        f"{_ROLES}/clusterrolebindings/{one['metadata']['name']}"
        for one in moved.api.expect("GET", f"{_ROLES}/clusterrolebindings")["items"]
        if one["metadata"].get("labels", {}).get("toponaut.io/account") == "generator"
        and one["subjects"][0]["namespace"] == moved.namespace
    )
    with changed(moved.api, path, None):
        wait_until(
            lambda: mark_a_node(moved, moved.generator).status != 200,
            deadline_s=30,
            what="no policy finds the account",
        )
        lease = {"metadata": {"name": f"theirs-{secrets.token_hex(4)}"}}
        moved.api.expect("POST", LEASES.path(namespace=_OTHER), lease)
        change = {"metadata": {"labels": {"rack": "r9"}}}
        answer = moved.api.request("PATCH", NODES.path(moved.other), change, content_type=MERGE)
        assert answer.status == 200
