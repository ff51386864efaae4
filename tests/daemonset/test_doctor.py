"""`toponaut doctor` on a real API server on which Helm has installed the chart."""

import base64

import pytest

from tests.daemonset.tools import NAMESPACE
from tests.generator.scenes import run
from tests.lab.api_server import ApiServer
from tests.lab.certificates import Authority

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("chart")]
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/toponaut-generator-tls"


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
