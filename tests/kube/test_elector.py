"""Leadership on a real server: outages, hangs, cuts, and wrong clocks."""

import signal
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from generator.kube.resources import LEASES
from generator.kube.transport import KubeTransport
from tests.kube.conftest import WRITER, connecting
from tests.kube.electors import LEASE, QUICK, Candidate, standing
from tests.kube.proxy import Fault, FaultProxy
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until
from tests.repository import ROOT

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

RENEWAL = "PUT .*/leases/"


def lease_of(api: ApiServer, namespace: str) -> dict[str, object]:
    spec = api.expect("GET", LEASES.path(LEASE, namespace=namespace))["spec"]
    assert isinstance(spec, dict)
    return spec


def test_it_passes_leadership_on_when_it_ends(
    api: ApiServer, transport: KubeTransport, namespace: str
) -> None:
    first = Candidate(transport, namespace, "a")
    first.expect("gained 0")
    second = Candidate(transport, namespace, "b")
    with standing(first, second):
        assert lease_of(api, namespace)["holderIdentity"] == "a"
        first.stop()
        first.expect("gained 0", "lost")
        second.expect("gained 1")
        assert lease_of(api, namespace)["leaseTransitions"] == 1
    second.expect("gained 1", "lost")
    assert lease_of(api, namespace)["holderIdentity"] == ""


def test_it_ignores_the_clocks_of_other_machines(transport: KubeTransport, namespace: str) -> None:
    first = Candidate(transport, namespace, "a", now=datetime(1999, 1, 1, tzinfo=UTC))
    first.expect("gained 0")
    second = Candidate(transport, namespace, "b", now=datetime(2100, 1, 1, tzinfo=UTC))
    with standing(first, second):
        first.renew(15)
        assert second.told == []


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault(is_silent=True), id="hangs", marks=pytest.mark.long),
        pytest.param(Fault(503), id="is overloaded"),
        pytest.param(Fault(cut_after=0), id="breaks off", marks=pytest.mark.long),
        pytest.param(Fault(403), id="refuses it", marks=pytest.mark.long),
    ],
)
def test_it_stops_leading_when_the_server(
    api: ApiServer, proxy: FaultProxy, through: KubeTransport, namespace: str, fault: Fault
) -> None:
    first = Candidate(through, namespace, "a", terms=QUICK)
    first.expect("gained 0")
    with connecting(api) as direct:
        second = Candidate(direct, namespace, "b", terms=QUICK)
        with standing(first, second):
            proxy.fail("leases", *[fault] * 1000)
            proxy.cut()
            second.expect("gained 1")
            assert first.told == ["gained 0", "lost"]
            proxy.relent()
            second.stop()
            first.expect("gained 0", "lost", "gained 2")


def test_it_keeps_leading_through_short_failures(
    proxy: FaultProxy, through: KubeTransport, namespace: str
) -> None:
    candidate = Candidate(through, namespace, "a")
    candidate.expect("gained 0")
    with standing(candidate):
        for fault in (Fault(500), Fault(cut_after=0), Fault(is_lost=True), Fault(409)):
            proxy.fail(RENEWAL, fault)
            candidate.renew(2)
        assert candidate.told == ["gained 0"]


@pytest.mark.parametrize(("refusals", "warnings"), [(2, 0), (5, 1)])
def test_it_warns_of_a_missing_right_only_if_it_stays_missing(
    proxy: FaultProxy,
    through: KubeTransport,
    namespace: str,
    caplog: pytest.LogCaptureFixture,
    *,
    refusals: int,
    warnings: int,
) -> None:
    proxy.fail("leases", *[Fault(403)] * refusals)
    candidate = Candidate(through, namespace, "a")
    with standing(candidate):
        candidate.expect("gained 0")
    said = [row.message for row in caplog.records if row.levelname == "WARNING"]
    assert said == ["cannot reach lease"] * warnings


def test_it_yields_to_an_administrator(
    api: ApiServer, transport: KubeTransport, namespace: str
) -> None:
    candidate = Candidate(transport, namespace, "a")
    candidate.expect("gained 0")
    path = LEASES.path(LEASE, namespace=namespace)

    def is_refused() -> bool:
        found = api.expect("GET", path)
        found["spec"] |= {"holderIdentity": "me", "leaseDurationSeconds": 600}
        return api.request("PUT", path, found).status != 200

    with standing(candidate):
        wait_until(is_refused, deadline_s=10, what="the administrator is in time")
        candidate.expect("gained 0", "lost")
        assert lease_of(api, namespace)["holderIdentity"] == "me"


def test_a_process_releases_its_lease_on_sigterm(api: ApiServer, namespace: str) -> None:
    file = api.kubeconfig(WRITER)
    argv = [sys.executable, "-m", "tests.kube.electors", str(file), namespace, "a"]
    with subprocess.Popen(argv, cwd=ROOT) as process:
        path = LEASES.path(LEASE, namespace=namespace)
        wait_until(
            lambda: api.request("GET", path).status != 200, deadline_s=30, what="the lease is taken"
        )
        assert lease_of(api, namespace)["holderIdentity"] == "a"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
    assert lease_of(api, namespace)["holderIdentity"] == ""
