"""Lists all objects of one kind, page by page, into a cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from generator.kube.cache import Cache
from generator.kube.resources import Resource
from generator.kube.transport import KubeRequest, Transport, decode_object
from topology.model.errors import KubeExpired, KubeNotFound, KubeUnavailable

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
