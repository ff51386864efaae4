"""Keeps all objects of one kind current: a list in pages, then a watch from the list's version.

The watch starts at the version of the list, never without a version, and is renewed every few
minutes from the version of the last event or bookmark. If the version is too old (410), the objects
are listed again, and differences count as changes, including deletions. They are also listed again,
at the end of a watch, if there is room for values that the quota dropped. After a failure the
reflector waits with full jitter, at least as long as the server asks; until then the last state is
used.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

from generator.kube.cache import Cache, Parse, Quota
from generator.kube.resources import Resource
from generator.kube.transport import KubeRequest, LineStream, Transport, decode_object
from runtime.retry import Backoff, RefusalStreak, WaitContext
from topology.model.errors import KubeError, KubeExpired, KubeNotFound, KubeUnavailable
from topology.model.kube_errors import error_of_status

Value = TypeVar("Value")


class Paging(NamedTuple):
    """The page size and the query of a list."""

    page_size: int = 500
    """Objects in one answer; 0 for all at once."""
    request_timeout_s: float = 60.0
    """Longest wait for a page."""
    query: tuple[tuple[str, str], ...] = ()
    """Additional parameters of every request, such as a label selector."""


DEFAULT_PAGING: Final = Paging()


def list_into_cache(
    cache: Cache[Value],
    transport: Transport,
    resource: Resource,
    *,
    paging: Paging = DEFAULT_PAGING,
) -> tuple[str, bool]:
    """List all objects into the cache; return the list's version, and whether a value changed.

    At most one page is in memory besides the values. If the version of the pages expires, all
    objects are listed in one request, which is expensive but cannot expire. If the quota refused
    values before all sizes were known, and keeps their senders now, the objects are listed a second
    time: what is kept then depends on the objects, not on their order.

    Raises:
        KubeNotFound: the server does not know the kind.
        KubeError: the list is refused or incomplete; the cache does not change.
    """
    try:
        return _list_with_quota(cache, transport, resource, paging)
    except KubeExpired:
        return _list_with_quota(cache, transport, resource, paging._replace(page_size=0))
    except KubeNotFound as error:
        hint = f"the cluster has no {resource.kind}, its CRD is not installed: {error}"
        raise KubeNotFound(hint, status=error.status, reason=error.reason) from error


def _list_with_quota(
    cache: Cache[Value], transport: Transport, resource: Resource, paging: Paging
) -> tuple[str, bool]:
    version, is_changed = _list_pages(cache, transport, resource, paging)
    if cache.has_room:
        version, is_more = _list_pages(cache, transport, resource, paging)
        is_changed |= is_more
    return version, is_changed


def _list_pages(
    cache: Cache[Value], transport: Transport, resource: Resource, paging: Paging
) -> tuple[str, bool]:
    versions: list[str] = []
    objects = fetch_objects(transport, resource, versions, paging)
    is_changed = cache.replace(objects, lambda: versions[-1])
    return versions[-1], is_changed


def fetch_objects(
    transport: Transport,
    resource: Resource,
    versions: list[str],
    paging: Paging = DEFAULT_PAGING,
) -> Iterator[Mapping[str, Any]]:
    """Yield all objects, and append the version of each page to `versions`.

    Raises:
        KubeError: the list is refused, incomplete or expired; objects may have been yielded.
    """
    token = ""
    while True:
        limit = (("limit", str(paging.page_size)),) if paging.page_size else ()
        more = (("continue", token),) if token else ()
        request = KubeRequest("GET", resource.path(), (*paging.query, *limit, *more))
        answer = decode_object(
            str(request), transport.ask(request, timeout_s=paging.request_timeout_s)
        )
        metadata, items = answer.get("metadata"), answer.get("items", ())
        version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
        if not isinstance(metadata, dict) or not version or not isinstance(items, list):
            raise KubeUnavailable(f"{request}: expected a list with its version")
        versions.append(str(version))
        token = metadata.get("continue") or ""
        del answer
        items.reverse()
        while items:  # drop each object once used: a page takes ten times the memory of its values
            yield items.pop()
        if not token:
            return


log = logging.getLogger(__name__)


_MAX_REFUSALS: Final = 3
"""After so many refusals in a row, a watch is replaced by a new list."""
_SHORT_WATCH_S: Final = 1.0
"""A watch that ends sooner without an event is a failure: renewing it at once would spin."""


@dataclass(frozen=True, slots=True)
class ReflectorConfig:
    """The settings of lists and watches."""

    paging: Paging = DEFAULT_PAGING
    watch_range_s: tuple[float, float] = (300.0, 600.0)
    """The range of a watch's requested duration, so that many watches do not end together."""
    idle_timeout_s: float = 150.0
    """Longest silence of a watch; the server sends a bookmark about once a minute."""
    backoff: Backoff = field(default_factory=Backoff)
    quota: Quota[Any] | None = None
    """How much memory the values may take."""


class Reflector(Generic[Value]):
    """Follows one kind of object; call `run` in its own thread. Any thread may read the cache."""

    def __init__(
        self,
        transport: Transport,
        resource: Resource,
        *,
        parse: Parse[Value],
        on_change: Callable[[], None],
        pace: WaitContext,
        config: ReflectorConfig = ReflectorConfig(),
    ) -> None:
        """Send no request yet.

        Args:
            transport: sends requests to the API server.
            resource: the kind to follow, in all namespaces.
            parse: returns the value to keep of each object.
            on_change: called in the reflector's thread after the first list (even if it is empty),
                after each change, and if the server does not serve the kind; must not raise.
            pace: how to wait, and the stop request.
            config: the settings of lists and watches.
        """
        self.cache = Cache(parse, config.quota)
        self.is_synced = False
        """Whether a list was complete; before that, an empty cache does not mean no objects."""
        self.is_missing = False
        """Whether the server does not serve the kind, and no list was complete before."""
        self.problem = ""
        """Why the cache is not current at the moment; empty while it is."""
        self.num_lists = 0
        """The number of complete lists."""
        self.num_watches = 0
        """The number of watches started."""
        self._transport = transport
        self._resource = resource
        self._on_change = on_change
        self._pace = pace
        self._settings = config
        self._version = ""
        self._failures = 0
        self._logged_problem = ""
        """The last logged failure; empty after a success."""
        self._refusals = RefusalStreak()

    def run(self) -> None:
        """Follow the objects until a stop is requested."""
        while not self._pace.stop.is_set:
            try:
                if not self._version or self.cache.has_room:
                    self._list_objects()
                self._watch_objects()
            except KubeError as error:
                if not self._pace.stop.is_set:
                    self._record_failure(error)

    def _record_failure(self, error: KubeError) -> None:
        """Log a failure once, and wait."""
        self._failures += 1
        is_refused = error.status != 0 and self._failures >= _MAX_REFUSALS
        if isinstance(error, KubeExpired) or is_refused:
            self._version = ""
        fields = {"resource": self._resource.plural, "error": str(error)}
        if isinstance(error, KubeExpired):
            log.info("watch expired, listing again", extra=fields)
        elif str(error) != self._logged_problem:
            if self._refusals.record(error):
                log.info("objects refused, asking again", extra=fields)
            else:
                log.warning("cannot follow objects", extra=fields)
                self._logged_problem = str(error)
        self.problem = str(error)
        was_missing = self.is_missing
        self.is_missing = isinstance(error, KubeNotFound) and not self.is_synced
        if self.is_missing and not was_missing:
            self._on_change()
        self._pace.stop.wait(
            self._settings.backoff.delay_s(
                self._failures, self._pace.uniform, asked_s=error.retry_after_s
            )
        )

    def _list_objects(self) -> None:
        version, is_changed = list_into_cache(
            self.cache, self._transport, self._resource, paging=self._settings.paging
        )
        is_first = not self.is_synced
        self._version, self.is_synced, self.is_missing = version, True, False
        self.num_lists += 1
        if is_changed or is_first:
            self._on_change()

    def _watch_objects(self) -> None:
        settings = self._settings
        seconds = int(self._pace.uniform(*settings.watch_range_s))
        query = (
            *settings.paging.query,
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", self._version),
            ("timeoutSeconds", str(max(1, seconds))),
        )
        request = KubeRequest("GET", self._resource.path(), query)
        started = self._pace.clock()
        self.num_watches += 1
        with self._transport.open_stream(request, idle_timeout_s=settings.idle_timeout_s) as lines:
            self.problem = ""  # a quiet kind may have no event for a minute
            num_events = self._read_events(lines, str(request))
        is_short = self._pace.clock() - started < _SHORT_WATCH_S
        if not num_events and is_short and not self._pace.stop.is_set:
            raise KubeUnavailable(f"{request}: ended at once")
        self._record_success()

    def _read_events(self, lines: LineStream, what: str) -> int:
        """Apply the events until the stream ends; return their number."""
        count = 0
        with self._pace.stop.on_set(lines.cancel):
            for count, line in enumerate(lines, 1):  # noqa: B007 - the last one is the number
                self._apply_event(line, what)
                self._record_success()
        return count

    def _apply_event(self, line: bytes, what: str) -> None:
        kind, document = _parse_event(line, what)
        match kind:
            case "ADDED" | "MODIFIED":
                is_changed = self.cache.put(document)
            case "DELETED":
                is_changed = self.cache.remove(document)
            case "BOOKMARK":
                self.cache.advance(document["metadata"]["resourceVersion"])
                is_changed = False
            case _:
                raise KubeExpired(f"{what}: an event of an unknown kind")
        self._version = str(document["metadata"]["resourceVersion"])
        if is_changed:
            self._on_change()

    def _record_success(self) -> None:
        self._failures, self._logged_problem = 0, ""
        self._refusals.record(None)


def _parse_event(line: bytes, what: str) -> tuple[str, Mapping[str, Any]]:
    """Return the type and the object of an event line.

    Raises:
        KubeError: the event is an error of the server.
        KubeExpired: the line is not an event, so changes may have been missed.
    """
    try:
        event = json.loads(line)
        kind, document = event["type"], event["object"]
        metadata = document.get("metadata", {})
        is_usable = kind == "ERROR" or isinstance(metadata.get("resourceVersion"), str)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise KubeExpired(f"{what}: a line that is not an event") from error
    if kind == "ERROR":
        status = document.get("code")
        raise error_of_status(what, status if isinstance(status, int) else 500, document)
    if not is_usable:
        raise KubeExpired(f"{what}: an event without a version")
    return str(kind), document
