"""Watches every change of HyperNodes as a scheduler does, and records invalid states."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from generator.kube.resources import HYPERNODES
from generator.kube.transport import KubeRequest, Transport, decode_object
from generator.outputs.hypernode.model import PLACEHOLDER, HyperNode, parse_manifest
from runtime.stop import Stop
from topology.model.errors import KubeUnavailable

_HEAD = {"apiVersion": HYPERNODES.api_version, "kind": HYPERNODES.kind}


class Observer:
    """HyperNodes by name after each event, one by one."""

    def __init__(self, transport: Transport) -> None:
        """List the HyperNodes; the watch starts at the list's version."""
        self.dangling: list[str] = []
        """The errors, as `parent names missing child`."""
        self.doubled: list[str] = []
        """The errors, as `member is in one and other`: nodes in two leaves, children of two."""
        self.on_event: Callable[[int], None] = lambda _num: None
        """Called after each event with the number of events so far, in the thread of the watch."""
        self.num_events = 0
        self.is_server_killed = False
        """Whether the watch may break, because a test kills the server."""
        self._transport = transport
        request = KubeRequest("GET", HYPERNODES.path())
        listed = decode_object(str(request), transport.ask(request, timeout_s=30))
        self._known = {one.name: one for one in map(_hypernode, listed["items"])}
        self._record_invalid("the list")
        self._version = str(listed["metadata"]["resourceVersion"])
        self._stop = Stop()
        self._thread = Thread(target=self._watch)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch within the context."""
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()

    def _watch(self) -> None:
        query = (("watch", "1"), ("resourceVersion", self._version), ("timeoutSeconds", "600"))
        with (
            self._transport.open_stream(
                KubeRequest("GET", HYPERNODES.path(), query), idle_timeout_s=600
            ) as lines,
            self._stop.on_set(lines.cancel),
        ):
            try:
                for line in lines:
                    self._take(json.loads(line))
            except KubeUnavailable:
                assert self._stop.is_set or self.is_server_killed, "the watch broke"

    def _take(self, event: dict[str, Any]) -> None:
        found = _hypernode(event["object"])
        self.num_events += 1
        if event["type"] == "DELETED":
            self._known.pop(found.name)
        else:
            self._known[found.name] = found
        self._record_invalid(f"{event['type']} of {found.name}")
        self.on_event(self.num_events)

    def _record_invalid(self, cause: str) -> None:
        self.dangling += [
            f"{parent.name} names missing {child} after {cause}"
            for parent in self._known.values()
            for child in parent.children
            if child not in self._known
        ]
        self.doubled += [
            f"{member} is in {' and '.join(holders)} after {cause}"
            for member, holders in self._find_holders().items()
            if len(holders) > 1
        ]

    def _find_holders(self) -> dict[str, list[str]]:
        holders: dict[str, list[str]] = {}
        for one in self._known.values():
            for member in (*one.children, *(one.nodes if one.tier == 1 else ())):
                holders.setdefault(member, []).append(one.name)
        holders.pop(PLACEHOLDER, None)
        return holders


def _hypernode(found: dict[str, Any]) -> HyperNode:
    return parse_manifest({**found, **_HEAD})
