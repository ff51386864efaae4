"""The page with tokens that a real API server reviews: at its port, and through the API server."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from time import monotonic

import pytest

from generator.kube.transport import KubeTransport
from generator.rpc.auth.tokens import TokenReviews
from generator.server.page_port import PagePort
from tests.generator.rpc.credentials import Pki
from tests.generator.web.sites import SOON_S, Site, outcome_of, serving, sources_of, tree_of
from tests.generator.web.test_site import trust
from tests.kube.accounts import AUDIENCE, Accounts, create_accounts
from tests.kube.kubectl_proxy import proxying
from tests.lab.api_server import ApiServer
from tests.lab.page.browser import Browser, chromium
from tests.lab.wait import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

SERVICE = "toponaut-generator"
VIEWS = ("fabric", "findings", "jobs", "changes")


@pytest.fixture
def accounts(api: ApiServer, namespace: str) -> Accounts:
    return create_accounts(api, namespace)


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


@pytest.fixture
def site(transport: KubeTransport, pki: Pki) -> Iterator[Site]:
    reviews = TokenReviews(transport, AUDIENCE, clock=monotonic)
    with serving(reviews, tls=pki.files, context=trust(pki)) as found:
        found.show(outcome_of(tree_of("node-1", "node-2"), "node-1"))
        yield found


def test_the_login_form_takes_the_token_of_an_account_that_may_place(
    site: Site, accounts: Accounts
) -> None:
    answer = site.log_in(accounts.token("scheduler"))
    assert (answer.status, answer.headers["location"]) == (303, "./")
    shown = site.ask("/document.json", Cookie=answer.cookie)
    assert shown.status == 200
    assert shown.document["findings"][0]["device"] == "node-1"


def test_the_login_form_says_which_right_an_account_lacks(site: Site, accounts: Accounts) -> None:
    answer = site.log_in(accounts.token("stranger"))
    assert answer.status == 401
    assert "stranger may not create placements.toponaut.io" in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("audience", ["https://kubernetes.default.svc", "other"])
def test_the_login_form_refuses_the_token_of_another_audience(
    site: Site, accounts: Accounts, audience: str
) -> None:
    answer = site.log_in(accounts.token("scheduler", audience))
    assert answer.status == 401
    assert "not valid here" in answer.text


def test_a_script_sends_the_token_in_a_header(site: Site, accounts: Accounts) -> None:
    good = {"Authorization": f"Bearer {accounts.token('scheduler')}"}
    assert site.ask("/document.json", headers=good).status == 200
    assert site.ask("/document.json", headers={"Authorization": "Bearer a.b.c"}).status == 401


def find_own_address() -> str:
    """Return an address of this machine that a Service may have: loopback is refused."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; chooses the interface
        except OSError:
            pytest.skip("this machine has no network interface but loopback")
        return str(probe.getsockname()[0])


def publish(api: ApiServer, namespace: str, accounts: Accounts, address: str) -> str:
    """Create the Service of the page, and return its path below the API server."""
    host, _, port = address.rpartition(":")
    core = f"/api/v1/namespaces/{namespace}"
    ports = [{"name": "https", "port": 443, "targetPort": int(port), "protocol": "TCP"}]
    api.expect(
        "POST", f"{core}/services", {"metadata": {"name": SERVICE}, "spec": {"ports": ports}}
    )
    accounts.create(SERVICE)
    running = {"phase": "Running", "podIP": host, "podIPs": [{"ip": host}]}
    pod = api.expect("GET", f"{core}/pods/{SERVICE}")
    api.expect("PUT", f"{core}/pods/{SERVICE}/status", {**pod, "status": running})
    # The proxy reads slices since Kubernetes 1.37, and connects only to addresses of a pod.
    target = {"kind": "Pod", "name": SERVICE, "namespace": namespace}
    endpoints = {
        "metadata": {"name": SERVICE, "labels": {"kubernetes.io/service-name": SERVICE}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}, "targetRef": target}],
        "ports": [{"name": "https", "port": int(port), "protocol": "TCP"}],
    }
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    api.expect("POST", slices, endpoints)
    path = f"{core}/services/https:{SERVICE}:https/proxy/"

    def find_problem() -> object:
        answer = api.request("GET", f"{path}page.css")
        return None if answer.status == HTTPStatus.OK else answer

    wait_until(find_problem, deadline_s=SOON_S, what="the Service")
    return path


@pytest.fixture
def proxied(
    api: ApiServer, namespace: str, transport: KubeTransport, accounts: Accounts, pki: Pki
) -> Iterator[str]:
    """The address of the page through `kubectl proxy` and the proxy of the API server."""
    reviews = TokenReviews(transport, AUDIENCE, clock=monotonic)
    port = PagePort(f"{find_own_address()}:0", sources_of(), tls=pki.files, tokens=reviews)
    try:
        port.document.on_round(outcome_of(tree_of("node-1", "node-2"), "node-1"))
        with proxying(api) as address:
            yield address + publish(api, namespace, accounts, port.address)
    finally:
        port.stop()


def read_text(browser: Browser, selector: str) -> str:
    return str(browser.run(f"document.querySelector({json.dumps(selector)}).innerText"))


def test_the_page_works_through_the_proxy_of_the_api_server(
    proxied: str, accounts: Accounts, tmp_path: Path
) -> None:
    """Below a path that the page does not know, every address of it must be relative."""
    with chromium(tmp_path) as browser:
        browser.open(proxied, ready="document.getElementById('token')")
        assert browser.run("location.href") == f"{proxied}login"
        browser.focus_by_tab("#token")
        browser.type_text(accounts.token("scheduler"))
        browser.press("Enter")
        browser.wait_for("document.body.dataset.readyMs")
        assert browser.run("location.href").startswith(f"{proxied}#view=fabric") or (
            browser.run("location.href") == proxied
        )
        for view in VIEWS:
            browser.open(f"{proxied}#view={view}")
            assert browser.run("document.title") == f"Toponaut: {view}"
        browser.open(f"{proxied}#view=findings")
        assert "node-1 is down" in read_text(browser, "#findings-table")
        cookies = browser.call("Network.getCookies", urls=[proxied])["cookies"]
        path = proxied.partition("/api/")[2].rstrip("/")
        assert [cookie["path"] for cookie in cookies] == [f"/api/{path}"]
        assert browser.problems == []
        browser.focus_by_tab("form[action=logout] button")
        browser.press("Enter")
        browser.wait_for("document.querySelector('#token')")
        browser.open(proxied, ready="document.getElementById('token')")
