"""A page that is served, and a client that sends requests byte by byte as it likes."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.reconcile.round_results import RoundOutcome
from generator.rpc.auth.authentication import TokenCheck
from generator.rpc.auth.tls import TlsFiles
from generator.server.page_port import PagePort, build_page_sources
from generator.web.live_document import PageSources
from topology.model.facts import Finding, FindingKind, Severity
from topology.model.tree import DomainSpec, TopologyTree, build_tree

ANY_PORT = "127.0.0.1:0"
SOON_S = 30.0
APPROVE = "toponaut approve --store /srv/fabric"


def tree_of(*nodes: str, leaf: str = "leaf-1") -> TopologyTree:
    return build_tree([DomainSpec(leaf, 1, None, nodes=nodes)], tiers=("leaf",))


TREE = tree_of("node-1", "node-2")


def outcome_of(tree: TopologyTree, *broken: str, **fields: Any) -> RoundOutcome:  # noqa: ANN401
    """Return a round that saw this tree, and these devices with a port that is down."""
    findings = tuple(
        Finding(
            FindingKind.DOWN_PORT, name, "1", severity=Severity.ERROR, message=f"{name} is down"
        )
        for name in broken
    )
    return RoundOutcome(duration_s=0.1, generation=1, tree=tree, findings=findings, **fields)


def sources_of(
    history: Path | None = None, snapshot: Callable[[], Snapshot | None] | None = None
) -> PageSources:
    empty = build_snapshot(TREE, {})
    return build_page_sources(
        lambda: None, snapshot or (lambda: empty), history, approve_command=APPROVE
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def document(self) -> Any:  # noqa: ANN401 - whatever was sent
        return json.loads(self.body)

    @property
    def cookie(self) -> str:
        """The cookie that the client sends from now on."""
        return self.headers["set-cookie"].split(";")[0]


class Site:
    """A page that is served."""

    def __init__(self, port: PagePort, context: ssl.SSLContext | None) -> None:
        self.port = port
        self._context = context

    @property
    def host_port(self) -> tuple[str, int]:
        host, _, port = self.port.address.rpartition(":")
        return host, int(port)

    def show(self, outcome: RoundOutcome) -> None:
        """Give the page the outcome of a round."""
        self.port.document.on_round(outcome)

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        **named: str,
    ) -> Answer:
        """Send one request; an underscore in the name of a named header is a dash."""
        host, port = self.host_port
        if self._context is None:
            client = http.client.HTTPConnection(host, port, timeout=SOON_S)
        else:
            client = http.client.HTTPSConnection(host, port, timeout=SOON_S, context=self._context)
        try:
            more = {name.replace("_", "-"): value for name, value in named.items()}
            client.request(method, path, body=body, headers={**(headers or {}), **more})
            answer = client.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            client.close()

    def log_in(self, token: str, headers: Mapping[str, str] | None = None) -> Answer:
        body = f"token={token}".encode()
        return self.ask("/login", method="POST", body=body, headers=headers)


@contextmanager
def serving(
    tokens: TokenCheck | None = None,
    *,
    tls: TlsFiles | None = None,
    context: ssl.SSLContext | None = None,
    sources: PageSources | None = None,
) -> Iterator[Site]:
    """Serve a page on loopback; without certificates it takes no tokens, as the options say."""
    port = PagePort(ANY_PORT, sources or sources_of(), tls=tls, tokens=tokens)
    try:
        yield Site(port, context)
    finally:
        port.stop()
