"""The port of the page: the document of the last round, behind the authentication of the gRPC port.

Without TLS the page is on loopback only, as gRPC is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from generator.history.history_file import open_history
from generator.placement.cluster.snapshot import Snapshot
from generator.rpc.auth.authentication import TokenCheck
from generator.rpc.auth.loopback import parse_listen_address, parse_loopback_address
from generator.rpc.auth.tls import TlsFiles
from generator.web.change_view import MAX_STEPS, TreeHistory
from generator.web.http_server import PageHttpServer
from generator.web.live_document import LiveDocument, PageSources
from generator.web.site import PageSite
from runtime.values import parse_address
from topology.planes.plane_split import PlaneSplit

log = logging.getLogger(__name__)

GONE_ROOM: Final = 2000
"""Room for ended findings that the page lists."""


class PagePort:
    """The page of a running server."""

    def __init__(
        self, address: str, sources: PageSources, *, tls: TlsFiles | None, tokens: TokenCheck | None
    ) -> None:
        """Bind the address and start.

        Args:
            address: `HOST:PORT`, loopback if there is no TLS; port 0 takes a free port.
            sources: the sources of the page's document.
            tls: None: without TLS.
            tokens: checks tokens; None: callers need none.

        Raises:
            ConfigError: the address is malformed, in use, or not loopback without TLS; or a file
                cannot be used.
        """
        parsed = parse_listen_address(address) if tls else parse_loopback_address(address)
        self.document = LiveDocument(sources, clock=time.monotonic)
        site = PageSite(self.document, tokens, is_local=tls is None)
        self._server = PageHttpServer(parse_address(parsed), site.build_app(), tls)
        self.address = str(self._server.address)
        """The bound address, with the real port."""
        self.url = self._server.address.url(is_tls=tls is not None)
        """The URL that a browser opens."""
        log.info("port open", extra={"what": "page", "address": self.address})

    def stop(self) -> None:
        """Accept no more connections, and end the open ones within some seconds."""
        self._server.stop()


def build_page_sources(
    find_planes: Callable[[], PlaneSplit | None],
    find_snapshot: Callable[[], Snapshot | None],
    history: Path | None,
    *,
    approve_command: str,
) -> PageSources:
    """Return the sources of the page of a server.

    Args:
        find_planes: returns the cables of the last observation and their planes.
        find_snapshot: returns the cluster with its reservations.
        history: the file; None: there is none.
        approve_command: the command that approves a plan, without its hash.
    """
    return PageSources(find_planes, find_snapshot, lambda: read_past(history), approve_command)


def read_past(file: Path | None) -> TreeHistory | None:
    """Return the part of a history that the page shows; None without a file.

    Raises:
        StoreError: the file cannot be read.
    """
    if file is None or not file.exists():
        return None
    with open_history(file) as history:
        trees = history.read_generations(limit=MAX_STEPS + 1)
        return TreeHistory(trees, history.read_lives(gone_room=GONE_ROOM), history.begin_s)
