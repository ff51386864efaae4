"""An API server's list and watch of one kind in memory, with chosen failures.

For laws over many histories; what the real server does is tested on the real server.
"""

import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, Self
from urllib.parse import parse_qs, urlencode

from generator.kube.transport import KubeRequest
from topology.model.errors import KubeExpired, KubeUnavailable


class Trouble(StrEnum):
    """The trouble of one request."""

    NONE = "none"
    REFUSED = "refused"
    EXPIRED = "too old"
    CUT = "cut half way"
    ERROR_OLD = "an event says: too old"
    ERROR_ANEW = "an event says: begin anew"
    JUNK = "a line of junk"
    FORGOTTEN = "history is forgotten first"


class History:
    """Objects by name, and every change so far with its version."""

    def __init__(self, version: int = 0) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.oldest = 0
        """Watches cannot start before this version."""
        self._version = version
        self._events: list[tuple[int, str, dict[str, Any]]] = []

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.objects[name]["word"] for name in sorted(self.objects))

    def put(self, name: str, word: str) -> None:
        kind = "MODIFIED" if name in self.objects else "ADDED"
        self.objects[name] = self._changed(kind, {"word": word}, name)

    def drop(self, name: str) -> None:
        gone = self.objects.pop(name, None)
        if gone is not None:
            self._changed("DELETED", {"word": gone["word"]}, name)

    def forget(self) -> None:
        self.oldest = self._version

    def page(self, token: str, limit: int) -> dict[str, Any]:
        """Return a page; the token of the next is the last name. All pages are of one moment."""
        names = [name for name in sorted(self.objects) if name > token]
        shown = names[:limit] if limit else names
        metadata = {"resourceVersion": str(self._version)}
        if len(shown) < len(names):
            metadata["continue"] = shown[-1]
        return {"metadata": metadata, "items": [self.objects[name] for name in shown]}

    def since(self, version: int) -> list[bytes]:
        """Return the lines of a watch from a version on, with a bookmark at its end."""
        if version < self.oldest:
            raise KubeExpired("too old", status=410)
        lines = [
            {"type": kind, "object": found} for at, kind, found in self._events if at > version
        ]
        mark = {"metadata": {"resourceVersion": str(self._version)}}
        return [json.dumps(one).encode() for one in (*lines, {"type": "BOOKMARK", "object": mark})]

    def _changed(self, kind: str, found: dict[str, Any], name: str) -> dict[str, Any]:
        self._version += 1
        metadata = {"name": name, "resourceVersion": str(self._version)}
        found = found | {"metadata": metadata}
        self._events.append((self._version, kind, found))
        return found


class FakeLines:
    """The lines of one answer, which may be cut."""

    def __init__(self, lines: list[bytes], *, is_cut: bool) -> None:
        self._lines, self._is_cut = lines, is_cut

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        return None

    def __iter__(self) -> Iterator[bytes]:
        yield from self._lines
        if self._is_cut:
            raise KubeUnavailable("cut")

    def cancel(self) -> None:
        return None


class FakeServer:
    """A `Transport` to a history; each trouble applies to one request in order, then none."""

    def __init__(
        self, history: History, troubles: list[Trouble], *, on_watch: Callable[[], None]
    ) -> None:
        """Keep the function to call before each watch is answered."""
        self._on_watch = on_watch
        self.history = history
        self.troubles = troubles
        self.asked: list[str] = []

    def ask(self, request: KubeRequest, *, timeout_s: float) -> bytes:
        """Answer a list."""
        assert timeout_s > 0
        query = self._note(request)
        trouble = self._next()
        if trouble in (Trouble.EXPIRED, Trouble.ERROR_OLD):
            raise KubeExpired("too old", status=410)
        if trouble is Trouble.JUNK:
            return b"[]"
        if trouble not in (Trouble.NONE, Trouble.FORGOTTEN):
            raise KubeUnavailable("no", status=503)
        token, limit = query.get("continue", [""])[0], int(query.get("limit", ["0"])[0])
        return json.dumps(self.history.page(token, limit)).encode()

    def open_stream(self, request: KubeRequest, *, idle_timeout_s: float) -> FakeLines:
        """Answer a watch with all events so far."""
        assert idle_timeout_s > 0
        query = self._note(request)
        self._on_watch()
        trouble = self._next()
        if trouble is Trouble.FORGOTTEN:
            self.history.forget()
        if trouble is Trouble.REFUSED:
            raise KubeUnavailable("no", status=429, retry_after_s=1)
        if trouble is Trouble.EXPIRED:
            raise KubeExpired("too old", status=410)
        lines = self.history.since(int(query["resourceVersion"][0]))
        half = lines[: len(lines) // 2]
        match trouble:
            case Trouble.CUT:
                return FakeLines(half, is_cut=True)
            case Trouble.JUNK:
                return FakeLines([*half, b"{"], is_cut=False)
            case Trouble.ERROR_OLD | Trouble.ERROR_ANEW:
                code = 410 if trouble is Trouble.ERROR_OLD else 500
                event = {"type": "ERROR", "object": {"code": code, "message": trouble.value}}
                return FakeLines([*half, json.dumps(event).encode()], is_cut=False)
            case _:
                return FakeLines(lines, is_cut=False)

    def _next(self) -> Trouble:
        return self.troubles.pop(0) if self.troubles else Trouble.NONE

    def _note(self, request: KubeRequest) -> dict[str, list[str]]:
        self.asked.append(f"{request}?{urlencode(request.query)}")
        return parse_qs(urlencode(request.query))
