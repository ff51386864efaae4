"""The API server fails while the fabric changes: the HyperNodes still follow."""

import json

import pytest

from generator.kube.resources import HYPERNODES
from generator.kube.transport import KubeRequest, KubeTransport
from tests.kube.bad_days.days import Cutting, Day
from tests.kube.conftest import WRITER, connecting
from tests.kube.proxy import Fault, status_body
from tests.lab.wait import wait_until
from topology.model.errors import KubeError

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube days")]

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
WRITES = "^(POST|PUT|PATCH|DELETE) .*hypernodes"
KINDS = ("neighborreports", "nodes", "hypernodes", "fabrics", "pods")


@pytest.mark.long
def test_it_follows_a_slow_server(day: Day) -> None:
    day.proxy.plague("", Fault(delay_s=1.0))
    day.move()
    day.await_tree()


@pytest.mark.long
def test_it_follows_by_watches_that_are_cut_every_second(day: Day) -> None:
    with Cutting(day.proxy, every_s=1.0):
        before = day.metric("watch_restarts_total", "neighborreports")
        day.move()
        day.await_tree()
        day.await_that(
            lambda: day.metric("watch_restarts_total", "neighborreports") > before + 2,
            "watches were begun again",
        )


def test_it_lists_again_after_its_watches_expired(day: Day) -> None:
    gone = {"type": "ERROR", "object": json.loads(status_body(410, "Expired", "too old"))}
    for kind in KINDS:
        day.proxy.fail(f"{kind}.*watch=1", Fault(lines=(json.dumps(gone).encode() + b"\n",)))
    since = day.num_lines
    day.proxy.cut()
    day.move()
    day.await_tree()
    for kind in KINDS:
        day.await_line("watch expired, listing again", kind, since)


@pytest.mark.long
def test_it_retries_writes_that_are_refused_for_a_while(day: Day) -> None:
    """Refusals: a conflict, a busy server, a failing server, a failing etcd."""
    refusals = {409: {}, 429: {"Retry-After": "1"}, 500: {}, 504: {}}
    day.proxy.fail(
        WRITES,
        *(
            Fault(status, headers=headers, body=status_body(status, "Injected", "not now"))
            for status, headers in refusals.items()
        ),
    )
    day.move()
    day.await_tree()
    for status in refusals:
        assert day.metric("api_requests_total", str(status)) > 0


def test_it_repeats_a_write_whose_answer_was_lost(day: Day) -> None:
    day.proxy.fail(WRITES, *[Fault(is_lost=True)] * 2)
    day.move()
    day.await_tree()


@pytest.mark.long
def test_it_continues_when_its_token_is_valid_again(day: Day) -> None:
    since = day.num_lines
    day.proxy.plague("", Fault(401, body=status_body(401, "Unauthorized", "Unauthorized")))
    day.proxy.cut()
    day.await_line("cannot follow objects", "401", since)
    day.move()
    day.proxy.relent()
    day.await_tree()


@pytest.mark.long
def test_it_loses_leadership_while_the_server_hangs_and_regains_it(day: Day) -> None:
    since = day.num_lines
    day.cluster.api.suspend()
    day.await_line("leadership lost", "", since)
    day.cluster.api.resume()
    day.move()
    day.await_tree()


@pytest.mark.long
def test_it_reports_denied_writes_and_writes_once_they_are_admitted(day: Day) -> None:
    api, name = day.cluster.api, "deny-hypernodes"
    rules = {
        "apiGroups": [HYPERNODES.group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": [HYPERNODES.plural],
    }
    spec = {
        "matchConstraints": {"resourceRules": [rules]},
        "matchConditions": [
            {"name": "ours", "expression": f"request.userInfo.username == '{WRITER}'"}
        ],
        "validations": [{"expression": "false", "message": "nobody writes HyperNodes today"}],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    policies, bindings = (
        f"{ADMISSION}/validatingadmissionpolicies",
        f"{ADMISSION}/validatingadmissionpolicybindings",
    )
    api.expect("POST", policies, {"metadata": {"name": name}, "spec": spec})
    api.expect("POST", bindings, {"metadata": {"name": name}, "spec": binding})
    try:
        with connecting(api) as other:
            wait_until(lambda: _is_let_write(day, other), deadline_s=60, what="the policy denies")
        before = day.cluster.versions()
        day.move()
        day.await_that(
            lambda: day.cluster.conditions().get("Ready") == "-WriteFailed", "the denial is told"
        )
        (ready,) = (
            one for one in day.cluster.fabric()["status"]["conditions"] if one["type"] == "Ready"
        )
        assert "nobody writes HyperNodes today" in ready["message"]
        assert day.cluster.versions() == before
    finally:
        api.expect("DELETE", f"{bindings}/{name}")
        api.expect("DELETE", f"{policies}/{name}")
    day.await_tree()


def _is_let_write(day: Day, other: KubeTransport) -> bool:
    """Return whether the generator's user may delete a HyperNode."""
    path = HYPERNODES.path(min(day.cluster.hypernodes()))
    try:
        other.ask(KubeRequest("DELETE", path, (("dryRun", "All"),)), timeout_s=30)
    except KubeError:
        return False
    return True
