"""Bound tokens of pods at a real server, which reviews them with a real API server."""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from generator.kube.transport import KubeTransport
from generator.rpc.auth.key_files import ClientIdentity
from generator.rpc.auth.tokens import TokenReviews
from generator.rpc.client import PlacementClient, PlacementServerError, Retries
from tests.generator.rpc.clusters import request_for
from tests.generator.rpc.credentials import SOON_S, Pki, Served, served
from tests.kube.accounts import AUDIENCE, Accounts, create_accounts
from tests.kube.conftest import connecting
from tests.kube.proxy import Fault, FaultProxy
from tests.lab.api_server import ApiServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]


@pytest.fixture
def accounts(api: ApiServer, namespace: str) -> Accounts:
    return create_accounts(api, namespace)


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


@pytest.fixture
def running(transport: KubeTransport, pki: Pki) -> Iterator[Served]:
    with served(pki.files, TokenReviews(transport, AUDIENCE, clock=monotonic)) as found:
        yield found


def ask(running: Served, pki: Pki, token: str) -> bool:
    proof = ClientIdentity(pki.ca, pki.write("token", token.encode()))
    with PlacementClient(running.address, SOON_S, proof, retries=Retries(max_attempts=1)) as client:
        return client.place(request_for(2)).is_feasible


def test_it_answers_a_pod_that_may_place(accounts: Accounts, running: Served, pki: Pki) -> None:
    assert ask(running, pki, accounts.token("scheduler"))


def test_it_refuses_a_pod_that_may_not(accounts: Accounts, running: Served, pki: Pki) -> None:
    with pytest.raises(PlacementServerError, match=r"stranger may not create placements"):
        ask(running, pki, accounts.token("stranger"))


@pytest.mark.parametrize("kind", ["audience", "signature", "nonsense"])
def test_it_refuses_a_token_of_another(
    accounts: Accounts, running: Served, pki: Pki, kind: str
) -> None:
    good = accounts.token("scheduler")
    token = {
        "audience": accounts.token("scheduler", "https://kubernetes.default.svc"),
        "signature": good[:-8] + good[-8:][::-1],
        "nonsense": "a.b.c",
    }[kind]
    with pytest.raises(PlacementServerError, match="not valid here"):
        ask(running, pki, token)


def test_it_asks_the_api_server_once_a_minute(
    accounts: Accounts, proxy: FaultProxy, api: ApiServer, pki: Pki
) -> None:
    token = accounts.token("scheduler")
    with (
        connecting(api, proxy.url) as through,
        served(pki.files, TokenReviews(through, AUDIENCE, clock=monotonic)) as running,
    ):
        proxy.fail("tokenreviews", Fault(503))
        with pytest.raises(PlacementServerError, match="cannot review the token at present"):
            ask(running, pki, token)
        assert ask(running, pki, token)
        assert ask(running, pki, token)
        assert proxy.count("tokenreviews") == 2
        assert proxy.count("subjectaccessreviews") == 1
