"""`toponaut doctor` on a real API server on which Helm has installed the chart."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.daemonset.tools import NAMESPACE
from tests.generator.scenes import run
from tests.lab.api_server import MERGE, ApiServer
from tests.lab.certificates import Authority

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("chart")]
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/toponaut-generator-tls"


ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICY = f"{ADMISSION}/validatingadmissionpolicies/toponaut-agent-own-reports"
BINDING = f"{ADMISSION}/validatingadmissionpolicybindings/toponaut-agent-own-reports"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@contextmanager
def changed(api: ApiServer, path: str, change: dict[str, Any] | None) -> Iterator[None]:
    """Change an object, or delete it, and bring it back."""
    before = api.expect("GET", path)
    before["metadata"] = {key: before["metadata"][key] for key in ("name", "labels")}
    if change is not None:
        assert api.request("PATCH", path, change, content_type=MERGE).status == 200
    try:
        if change is None:
            api.expect("DELETE", path)
        yield
    finally:
        api.request("DELETE", path)
        api.expect("POST", path.rpartition("/")[0], before)


def lines(api: ApiServer, *options: object) -> dict[str, tuple[str, str]]:
    """Return the outcome and the message of each subject."""
    rows = run("doctor", "--kubeconfig", api.kubeconfig(), "-o", "json", *options).document
    return {row["subject"]: (row["outcome"], row["message"]) for row in rows}


def test_it_finds_that_the_account_of_the_chart_has_every_right(cluster: ApiServer) -> None:
    outcome, message = lines(cluster)["Rights"]
    assert (outcome, message) == ("ok", "toponaut-generator may do all that it does")


def test_it_names_the_rights_that_an_account_without_a_role_lacks(cluster: ApiServer) -> None:
    namespace = cluster.namespace()
    head = {"apiVersion": "v1", "kind": "ServiceAccount"}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/toponaut-generator?fieldManager=lab"
    cluster.apply(path, head | {"metadata": {"name": "toponaut-generator"}})
    outcome, message = lines(cluster, "--namespace", namespace)["Rights"]
    assert outcome == "error"
    assert message.startswith("toponaut-generator may not: get nodes, list nodes, watch nodes, ")


def test_it_finds_that_the_policies_limit_the_accounts_in_use(cluster: ApiServer) -> None:
    accounts = "toponaut-system/toponaut-agent, toponaut-system/toponaut-generator"
    assert lines(cluster)["Policies"] == ("ok", f"10 policies limit {accounts}")


FAULTS: dict[str, tuple[str, dict[str, Any] | None, str]] = {
    "a deleted policy": (POLICY, None, "missing: toponaut-agent-own-reports"),
    "a deleted binding": (BINDING, None, "toponaut-agent-own-reports refuses nothing"),
    "a binding that only warns": (
        *(BINDING, {"spec": {"validationActions": ["Warn"]}}),
        "toponaut-agent-own-reports refuses nothing",
    ),
    "a policy that lets its failures through": (
        *(POLICY, {"spec": {"failurePolicy": "Ignore"}}),
        "lets through what it cannot judge",
    ),
    "a policy for the objects of some labels": (
        *(POLICY, {"spec": {"matchConstraints": {"objectSelector": {"matchLabels": {"a": "b"}}}}}),
        "does not apply to all objects",
    ),
    "a binding of rights that the policies do not find": (
        *(f"{ROLES}/toponaut-agent", {"metadata": {"labels": {"toponaut.io/account": None}}}),
        "does not limit toponaut-system/toponaut-agent",
    ),
    "pods of another account": (
        f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/toponaut-agent",
        {"spec": {"template": {"spec": {"serviceAccountName": "other"}}}},
        "does not limit toponaut-system/other",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_it_finds_a_policy_that_does_not_hold(fault: str, cluster: ApiServer) -> None:
    path, change, says = FAULTS[fault]
    with changed(cluster, path, change):
        rows = run("doctor", "--kubeconfig", cluster.kubeconfig(), "-o", "json").document
    found = [row for row in rows if row["subject"] == "Policies"]
    assert {row["outcome"] for row in found} == {"error"}
    assert says in found[0]["message"]
    assert found[0]["fix"]


def test_it_finds_an_account_that_has_the_role_by_another_binding(cluster: ApiServer) -> None:
    role = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "toponaut-agent",
    }
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": "mine"}
    binding = {"metadata": {"name": "mine"}, "roleRef": role, "subjects": [subject]}
    cluster.expect("POST", ROLES, binding)
    try:
        outcome, message = lines(cluster)["Policies"]
    finally:
        cluster.expect("DELETE", f"{ROLES}/mine")
    assert outcome == "error"
    assert "does not limit default/mine" in message


def test_it_has_no_line_about_rights_without_an_account(cluster: ApiServer) -> None:
    assert "Rights" not in lines(cluster, "--namespace", "default")


def test_it_says_when_the_certificate_expires_and_prints_nothing_of_the_key(
    cluster: ApiServer,
) -> None:
    assert lines(cluster)["Certificate"] == (
        "error",
        "Secret toponaut-generator-tls is missing or has no certificate",
    )
    cert, key = Authority("ca").issue("toponaut")
    data = {"tls.crt": base64.b64encode(cert).decode(), "tls.key": base64.b64encode(key).decode()}
    head = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls"}
    cluster.apply(
        f"{SECRET}?fieldManager=lab",
        head | {"metadata": {"name": "toponaut-generator-tls"}, "data": data},
    )
    try:
        outcome, message = lines(cluster)["Certificate"]
        ran = run("doctor", "--kubeconfig", cluster.kubeconfig(), "-o", "json")
    finally:
        cluster.request("DELETE", SECRET)
    assert outcome == "warning"
    assert message.startswith("Secret toponaut-generator-tls expires on ")
    assert data["tls.key"] not in ran.out + ran.err


def test_it_says_that_no_agent_pod_is_wanted_where_nothing_runs_pods(cluster: ApiServer) -> None:
    assert lines(cluster)["Agent pods"][0] == "warning"
