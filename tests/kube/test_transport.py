"""Requests to a real server, through a proxy that fails where a network would."""

import contextlib
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kubernetes.client.configuration import Configuration

from generator.kube.credentials import load_in_cluster, load_kubeconfig
from generator.kube.transport import APPLY, KubeRequest, KubeTransport, decode_object
from tests.kube.conftest import WRITER, connecting
from tests.kube.proxy import Fault, FaultProxy, status_body
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until
from topology.model.errors import (
    ConfigError,
    KubeConflict,
    KubeError,
    KubeExpired,
    KubeForbidden,
    KubeNotFound,
    KubeUnavailable,
)

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

NAMESPACES = KubeRequest("GET", "/api/v1/namespaces")


def test_it_reads_writes_and_deletes(transport: KubeTransport, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    made = KubeRequest("POST", path, body={"metadata": {"name": "one"}, "data": {"a": "ü"}})
    assert decode_object("", transport.ask(made, timeout_s=10))["data"] == {"a": "ü"}
    applied = KubeRequest(
        "PATCH",
        f"{path}/one",
        (("fieldManager", "test"), ("force", "true")),
        {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
        APPLY,
    )
    assert decode_object("", transport.ask(applied, timeout_s=10))["data"] == {"a": "b"}
    transport.ask(KubeRequest("DELETE", f"{path}/one"), timeout_s=10)
    with pytest.raises(KubeNotFound, match=r"GET .*/one: 404 configmaps .one. not found"):
        transport.ask(KubeRequest("GET", f"{path}/one"), timeout_s=10)


def test_it_raises_the_refusals_of_the_real_server(
    transport: KubeTransport, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    made = KubeRequest("POST", path, body={"metadata": {"name": "twice"}})
    transport.ask(made, timeout_s=10)
    with pytest.raises(KubeConflict) as twice:
        transport.ask(made, timeout_s=10)
    assert (twice.value.status, twice.value.reason) == (409, "AlreadyExists")
    with pytest.raises(KubeError) as invalid:
        transport.ask(KubeRequest("POST", path, body={"metadata": {"name": "A B"}}), timeout_s=10)
    assert invalid.value.status == 422


def test_it_is_refused_without_rights(api: ApiServer, tmp_path: Path) -> None:
    config = json.loads(api.kubeconfig(WRITER).read_text())
    config["users"][0]["user"] = {}
    file = tmp_path / "nobody"
    file.write_text(json.dumps(config))
    nobody = KubeTransport(lambda: load_kubeconfig(str(file)))
    with pytest.raises(KubeForbidden, match="system:anonymous"):
        nobody.ask(NAMESPACES, timeout_s=10)


@pytest.mark.parametrize(
    ("fault", "kind", "retry_after_s"),
    [
        pytest.param(
            Fault(429, {"Retry-After": "7"}), KubeUnavailable, 7.0, id="too many requests"
        ),
        pytest.param(
            Fault(429, {"Retry-After": "1e9"}), KubeUnavailable, 300.0, id="a wait without end"
        ),
        pytest.param(
            Fault(503, {"Retry-After": "Sat, 1 Jan"}), KubeUnavailable, None, id="a wait in words"
        ),
        pytest.param(
            Fault(500, body=b"\xff\x1b[31m" * 500), KubeUnavailable, None, id="a failure with junk"
        ),
        pytest.param(
            Fault(410, body=status_body(410, "Expired", "too old")), KubeExpired, None, id="expired"
        ),
        pytest.param(Fault(504, body=b"[" * 100_000), KubeUnavailable, None, id="nested brackets"),
        pytest.param(Fault(418), KubeError, None, id="an unknown status"),
        pytest.param(Fault(cut_after=0), KubeUnavailable, None, id="a cut before the answer"),
        pytest.param(Fault(cut_after=20), KubeUnavailable, None, id="a cut within the answer"),
        pytest.param(Fault(is_silent=True), KubeUnavailable, None, id="silence"),
    ],
)
def test_it_raises_an_injected_failure(
    proxy: FaultProxy,
    through: KubeTransport,
    fault: Fault,
    kind: type[KubeError],
    retry_after_s: float | None,
) -> None:
    proxy.fail("GET /api/v1/namespaces", fault)
    with pytest.raises(KubeError) as told:
        through.ask(NAMESPACES, timeout_s=0.5)
    assert type(told.value) is kind
    assert told.value.retry_after_s == retry_after_s
    assert str(told.value).isprintable()
    assert len(str(told.value)) < 5000
    assert decode_object("", through.ask(NAMESPACES, timeout_s=10))["kind"] == "NamespaceList"


def test_it_never_repeats_a_write_by_itself(
    proxy: FaultProxy, through: KubeTransport, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    proxy.fail("POST", Fault(is_lost=True))
    made = KubeRequest("POST", path, body={"metadata": {"name": "once"}})
    with pytest.raises(KubeUnavailable):
        through.ask(made, timeout_s=5)
    assert proxy.count("POST") == 1
    through.ask(KubeRequest("GET", f"{path}/once"), timeout_s=5)


def test_it_times_out_on_a_server_that_hangs(other_api: ApiServer) -> None:
    """Over a connection that is open, and over one that has to be opened first."""
    with connecting(other_api) as transport, connecting(other_api) as unconnected:
        transport.ask(NAMESPACES, timeout_s=10)
        other_api.suspend()
        for one in (transport, unconnected):
            started_s = time.monotonic()
            with pytest.raises(KubeUnavailable):
                one.ask(NAMESPACES, timeout_s=0.5)
            assert time.monotonic() - started_s < 5
        other_api.resume()
        transport.ask(NAMESPACES, timeout_s=10)


def test_it_refuses_a_server_with_another_authority(api: ApiServer, other_api: ApiServer) -> None:
    with (
        connecting(other_api, api.url) as stranger,
        pytest.raises(KubeUnavailable, match=r"[Cc]ertificate"),
    ):
        stranger.ask(NAMESPACES, timeout_s=10)


def test_it_ends_a_stream_from_another_thread(transport: KubeTransport) -> None:
    watch = KubeRequest("GET", NAMESPACES.path, (("watch", "1"), ("allowWatchBookmarks", "true")))
    with transport.open_stream(watch, idle_timeout_s=60) as lines:
        next(iter(lines))
        threading.Timer(0.1, lines.cancel).start()
        started = time.monotonic()
        with contextlib.suppress(KubeUnavailable):
            list(lines)
        assert time.monotonic() - started < 5
    lines.cancel()


def test_it_leaves_out_a_line_that_was_cut_off(proxy: FaultProxy, through: KubeTransport) -> None:
    proxy.fail("GET", Fault(lines=(b"one\ntw", b"o\nthr", b"ee"), cut_after=None))
    with through.open_stream(NAMESPACES, idle_timeout_s=5) as lines:
        assert list(lines) == [b"one", b"two"]


def test_it_refuses_a_line_without_end(
    proxy: FaultProxy, through: KubeTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("generator.kube.transport.MAX_LINE_BYTES", 1000)
    proxy.fail("GET", Fault(lines=(b"x" * 600, b"x" * 600)))
    with (
        through.open_stream(NAMESPACES, idle_timeout_s=5) as lines,
        pytest.raises(KubeUnavailable, match="a line of more than 1000"),
    ):
        list(lines)


@pytest.mark.parametrize("num_bytes", [10, 200_000], ids=["a short refusal", "a long refusal"])
def test_it_keeps_no_connection_open(
    proxy: FaultProxy, through: KubeTransport, num_bytes: int
) -> None:
    proxy.fail("watch", Fault(status=410, body=b"x" * num_bytes))
    watch = KubeRequest("GET", "/api/v1/namespaces", (("watch", "1"),))
    with pytest.raises(KubeExpired) as refusal:  # it keeps alive what it knows of the answer
        through.open_stream(watch, idle_timeout_s=5)
    through.ask(NAMESPACES, timeout_s=10)
    through.close()
    wait_until(lambda: proxy.num_open == 0, deadline_s=10, what="the end of all connections")
    assert refusal.value.status == 410


def test_it_refuses_an_answer_that_is_too_large(
    transport: KubeTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("generator.kube.transport.MAX_ANSWER_BYTES", 100)
    with pytest.raises(KubeUnavailable, match="answered more than"):
        transport.ask(NAMESPACES, timeout_s=10)


class Pod:
    """The files and variables of a pod's service account."""

    def __init__(self, api: ApiServer, folder: Path) -> None:
        self.token, self.ca = folder / "token", folder / "ca.crt"
        self.ca.write_bytes(api.ca.read_bytes())
        self.environ = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(api.port),
        }
        self.num_loads = 0

    def load(self) -> KubeTransport:
        return KubeTransport(self._load)

    def _load(self) -> Configuration:
        self.num_loads += 1
        return load_in_cluster(self.environ, token=self.token, ca=self.ca)


def _account(api: ApiServer, namespace: str) -> Callable[[], str]:
    """Make a service account, and return a function that makes its tokens."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    api.expect("POST", accounts, {"metadata": {"name": "generator"}})

    def issue() -> str:
        spec = {"spec": {"expirationSeconds": 600}}
        answer = api.expect("POST", f"{accounts}/generator/token", spec)
        return str(answer["status"]["token"])

    return issue


def test_it_uses_a_new_token_when_the_old_one_is_refused(
    api: ApiServer, namespace: str, tmp_path: Path
) -> None:
    issue = _account(api, namespace)
    pod = Pod(api, tmp_path)
    pod.token.write_text("worn-out")
    transport = pod.load()
    whoami = KubeRequest(
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        body={"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    )
    with pytest.raises(KubeForbidden) as refused:
        transport.ask(whoami, timeout_s=10)
    assert refused.value.status == 401
    pod.token.write_text(issue() + "\n")
    user = decode_object("", transport.ask(whoami, timeout_s=10))["status"]["userInfo"]["username"]
    assert user == f"system:serviceaccount:{namespace}:generator"
    loads = pod.num_loads
    transport.ask(whoami, timeout_s=10)
    assert pod.num_loads == loads


def test_it_keeps_its_credentials_while_the_files_are_gone(
    api: ApiServer, namespace: str, tmp_path: Path
) -> None:
    pod = Pod(api, tmp_path)
    pod.token.write_text(_account(api, namespace)())
    transport = pod.load()
    pod.token.unlink()
    version = KubeRequest("GET", "/version")
    assert decode_object("", transport.ask(version, timeout_s=10))["gitVersion"].startswith("v1.")
    with pytest.raises(ConfigError, match="credentials of the pod"):
        pod.load()
