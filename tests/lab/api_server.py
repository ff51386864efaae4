"""A genuine Kubernetes API of etcd and kube-apiserver on loopback: no container and no kubelet.

No controllers run either: nothing collects garbage, a namespace once deleted stays `Terminating`,
and a service account must be made before a pod that names it. So each test gets a namespace of
its own and nothing is tidied away; the two programs end with the session, however it ends.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import secrets
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest

from tests.documents import parse_documents
from tests.lab.audit import POLICY, Write, read_writes
from tests.lab.certificates import write_certificates
from tests.lab.programs import Program
from tests.lab.tools import require_tools
from tests.lab.wait import wait_until
from tests.repository import ROOT

ADMIN = "admin"
JSON = "application/json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
START_DEADLINE_S = 90  # 3.5 s on two free cores, 11 s on crowded ones
REQUEST_TIMEOUT_S = 30
_SERVICE_ISSUER = "https://kubernetes.default.svc"


_NOT_IN_CI = frozenset({"kueue", "volcano"})
"""Their builds would take CI too long."""


def find_assets(what: str) -> Path:
    """Return a folder: `programs`, `scheduler`, `crds`, `consumers`, `kinds`, `kueue` or `volcano`.

    Without it the test is skipped. In CI it fails, unless CI does not build it.
    """
    require_tools("setpriv")
    asked = subprocess.run(
        [ROOT / "tools/kube-assets", "--where", what], capture_output=True, text=True, check=False
    )
    if asked.returncode == 0:
        return Path(asked.stdout.strip())
    if os.environ.get("CI") == "true" and what not in _NOT_IN_CI:
        pytest.fail(asked.stderr.strip())
    pytest.skip(asked.stderr.strip())


class Answer(NamedTuple):
    """The answer to one request."""

    status: int
    body: dict[str, Any]

    @property
    def message(self) -> str:
        """The message of a refused request."""
        return str(self.body.get("message", ""))


class Connection:
    """Requests with one token, on a connection that stays open until a request on it fails.

    Threads ask one after the other.
    """

    def __init__(self, api: ApiServer, token: str) -> None:
        self._api = api
        self._token = token
        self._lock = threading.Lock()
        self._opened: http.client.HTTPSConnection | None = None

    def ask(self, method: str, path: str, body: object, headers: Mapping[str, str]) -> Answer:
        """Return the answer, of any status; a server that is away raises OSError or HTTPException.

        A server that was restarted has closed the connection, so the request goes out once more.
        """
        raw = None if body is None else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self._token}", **headers}
        with self._lock:
            is_reused = self._opened is not None
            try:
                return self._ask(method, path, raw, sent)
            except (ConnectionError, ssl.SSLEOFError, http.client.HTTPException):
                if not is_reused:
                    raise
            return self._ask(method, path, raw, sent)

    def _ask(self, method: str, path: str, raw: bytes | None, headers: Mapping[str, str]) -> Answer:
        connection, self._opened = self._opened, None
        if connection is None:
            connection = http.client.HTTPSConnection(
                "127.0.0.1", self._api.port, timeout=REQUEST_TIMEOUT_S, context=self._api.tls
            )
        with contextlib.ExitStack() as stack:
            stack.callback(connection.close)
            connection.request(method, path, raw, headers)
            answer = connection.getresponse()
            text = answer.read()
            if not answer.will_close:
                stack.pop_all()
                self._opened = connection
        is_json = "json" in answer.headers.get("Content-Type", "") and "watch=1" not in path
        return Answer(answer.status, json.loads(text) if is_json else {"message": text.decode()})

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
            self._opened = None


class ApiServer:
    """etcd and kube-apiserver: started together, and stopped, hung or restarted at will."""

    def __init__(
        self,
        programs: Path,
        folder: Path,
        *,
        users: Iterable[str] = (),
        options: Iterable[str] = (),
    ) -> None:
        """Start both and wait until they are ready.

        Args:
            programs: where the two executables are.
            folder: for keys, logs and what etcd stores.
            users: of these each gets a token, and no right to anything.
            options: further ones of the server, such as feature gates.
        """
        self.folder = folder
        self._programs = programs
        self._options = tuple(options)
        self.tokens = {user: secrets.token_urlsafe(16) for user in (ADMIN, *users)}
        write_certificates(folder)
        (folder / "audit.yaml").write_text(json.dumps(POLICY))
        self._write_tokens()
        self.tls = ssl.create_default_context(cafile=str(self.ca))
        self.port, self._client_port, self._peer_port = 0, 0, 0
        self._connections: list[Connection] = []
        self._admin = self.connect(self.tokens[ADMIN])
        self._etcd, self._server = self._start()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *ended: object) -> None:
        """End both programs."""
        for connection in self._connections:
            connection.close()
        self._server.end(signal.SIGKILL)
        self._etcd.end(signal.SIGKILL)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca(self) -> Path:
        """The certificate that its own is signed by."""
        return self.folder / "ca.crt"

    @property
    def rss_bytes(self) -> tuple[int, int]:
        """Resident memory of etcd and of the server."""
        return self._etcd.rss_bytes, self._server.rss_bytes

    def connect(self, token: str) -> Connection:
        """Return a connection with a token, which is closed when the server ends."""
        self._connections.append(Connection(self, token))
        return self._connections[-1]

    def kubeconfig(self, user: str = ADMIN, *, url: str = "") -> Path:
        """Write the file by which a client connects as this user, to another address if given."""
        cluster = {"server": url or self.url, "certificate-authority-data": _base64(self.ca)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": self.tokens[user]}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": user}}],
            "current-context": "lab",
        }
        file = self.folder / f"{user}-{secrets.token_hex(4)}.kubeconfig"
        file.write_text(json.dumps(config))
        return file

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        accept: str = JSON,
        content_type: str = JSON,
    ) -> Answer:
        """Ask as the administrator; any status is an answer."""
        headers = {"Accept": accept, "Content-Type": content_type}
        return self._admin.ask(method, path, body, headers)

    def expect(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Ask as the administrator and return the body.

        Raises:
            AssertionError: it is refused; says why.
        """
        answer = self.request(method, path, body)
        assert answer.status < 300, f"{method} {path}: {answer.status} {answer.message}"
        return answer.body

    def apply(self, path: str, body: object) -> dict[str, Any]:
        """Apply an object on the server's side as the administrator, and return it."""
        answer = self.request("PATCH", path, body, content_type=APPLY)
        assert answer.status < 300, f"{path}: {answer.status} {answer.message}"
        return answer.body

    def merge(self, path: str, body: object) -> dict[str, Any]:
        """Merge a change into an object as the administrator, and return the object."""
        answer = self.request("PATCH", path, body, content_type=MERGE)
        assert answer.status < 300, f"{path}: {answer.status} {answer.message}"
        return answer.body

    def namespace(self) -> str:
        """Make a namespace that no other test has, and return its name."""
        name = f"test-{secrets.token_hex(4)}"
        self.expect("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        return name

    def install(self, crd: Mapping[str, Any]) -> None:
        """Create a CustomResourceDefinition and wait until its objects can be listed."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        answer = self.request("POST", path, crd)
        assert answer.status in (201, 409), f"{crd['metadata']['name']}: {answer.message}"
        group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
        for version in crd["spec"]["versions"]:
            listed = f"/apis/{group}/{version['name']}/{plural}?limit=1"
            # For a moment after it is established the path is still unknown.
            wait_until(partial(self._refused, listed), deadline_s=20, what=listed)

    def install_all(self, folder: Path) -> None:
        """Install the definitions of a folder, unless they are there."""
        for file in sorted(folder.glob("*.yaml")):
            for definition in parse_documents(file.read_text()):
                self.install(definition)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the server; etcd stays. SIGKILL is a crash."""
        self._server.end(number)

    def restart(self) -> None:
        """Start a stopped server again, on the same port and data."""
        self._server = self._start_server()
        self._await_ready()

    def revive(self) -> None:
        """Make it run again, whatever a test has left it in."""
        self.resume()
        if not self._server.is_running:
            self.restart()

    def suspend(self) -> None:
        """Let the server hang: connections open, nothing answers."""
        self._server.send(signal.SIGSTOP)
        # A thread on another core may still answer for a moment.
        wait_until(self._server.running_threads, deadline_s=10, what="the server is stopped")

    def resume(self) -> None:
        """Let a hanging server go on."""
        if self._server.is_running:
            self._server.send(signal.SIGCONT)

    def writes_by(self, user: str) -> list[Write]:
        """Return what a user has changed or tried to change so far, dry runs and reviews apart."""
        marker = f"marker-{secrets.token_hex(8)}"
        configmaps = "/api/v1/namespaces/default/configmaps?dryRun=All"
        wait_until(
            lambda: self.request("POST", configmaps, {"metadata": {"name": marker}}).status != 201,
            deadline_s=10,
            what="the marker of the audit log is taken",
        )
        log = self.folder / "audit.log"
        wait_until(lambda: marker not in log.read_text(), deadline_s=10, what="the audit log")
        return read_writes(log.read_text(), user)

    def _write_tokens(self) -> None:
        file = self.folder / "tokens.csv"
        file.touch(mode=0o600)
        groups = {ADMIN: ',"system:masters"'}
        rows = enumerate(self.tokens.items())
        file.write_text(
            "".join(f"{token},{user},{at}{groups.get(user, '')}\n" for at, (user, token) in rows)
        )

    def _start(self) -> tuple[Program, Program]:
        """Start both on free ports; those of another program that was quicker cost a new try."""
        for _ in range(3):
            self.port, self._client_port, self._peer_port = free_ports(3)
            self._etcd, self._server = self._start_etcd(), self._start_server()
            if not self._await_ready_or_taken():
                return self._etcd, self._server
            self._server.end(signal.SIGKILL)
            self._etcd.end(signal.SIGKILL)
        raise AssertionError("three times in a row somebody else took the ports")

    def _start_etcd(self) -> Program:
        client, peer = (f"http://127.0.0.1:{at}" for at in (self._client_port, self._peer_port))
        argv = [
            str(self._programs / "etcd"),
            "--name=lab",
            f"--data-dir={self.folder / f'etcd-{self._client_port}'}",
            "--unsafe-no-fsync",
            "--log-level=warn",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=lab={peer}",
        ]
        return Program(argv, self.folder / "etcd.log")

    def _start_server(self) -> Program:
        argv = [
            str(self._programs / "kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{self._client_port}",
            "--etcd-compaction-interval=0",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--tls-cert-file={self.folder / 'server.crt'}",
            f"--tls-private-key-file={self.folder / 'server.key'}",
            f"--client-ca-file={self.ca}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            f"--service-account-issuer={_SERVICE_ISSUER}",
            f"--api-audiences={_SERVICE_ISSUER}",
            f"--service-account-key-file={self.folder / 'sa.pub'}",
            f"--service-account-signing-key-file={self.folder / 'sa.key'}",
            "--service-cluster-ip-range=10.96.0.0/24",
            "--endpoint-reconciler-type=none",
            "--allow-privileged=true",
            "--enable-admission-plugins=NodeRestriction",
            "--profiling=false",
            f"--audit-policy-file={self.folder / 'audit.yaml'}",
            f"--audit-log-path={self.folder / 'audit.log'}",
            "--audit-log-mode=blocking",
            "--v=1",
            *self._options,
        ]
        return Program(argv, self.folder / "kube-apiserver.log")

    def _await_ready_or_taken(self) -> bool:
        """Return True where a port was taken, once that or readiness is known."""
        programs = (self._etcd, self._server)
        wait_until(
            lambda: all(one.is_running for one in programs) and self._refused("/readyz"),
            deadline_s=START_DEADLINE_S,
            what=f"the API server is ready, see {self.folder}",
        )
        ended = [one.log.read_text()[-2000:] for one in programs if not one.is_running]
        taken = any("address already in use" in log for log in ended)
        assert taken or not ended, "\n".join(ended)
        return taken

    def _await_ready(self) -> None:
        assert not self._await_ready_or_taken(), "somebody else took the port"

    def _refused(self, path: str) -> str:
        """Return why a path is not served yet, empty when it is."""
        try:
            answer = self.request("GET", path)
        except (OSError, http.client.HTTPException) as error:
            return str(error) or type(error).__name__
        return "" if answer.status == 200 else f"{answer.status} {answer.message[:200]}"


def free_ports(count: int) -> list[int]:
    """Return ports that are free right now, all different."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in held]


def _base64(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
