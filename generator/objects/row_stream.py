"""The rows of a large JSON list, one at a time; all of them at once take gigabytes. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

_OPEN = re.compile(r'\s*\{\s*"([A-Za-z]+)"\s*:\s*\[\s*')
_LIST_OPEN = re.compile(
    r'\s*\{\s*(?:"(?:apiVersion"\s*:\s*"v1|kind"\s*:\s*"(?:Node)?List)"\s*,\s*){1,2}'
    r'"(items)"\s*:\s*\[\s*'
)
"""`kubectl get nodes -o json`; it prints its keys in this order."""
_LIST_CLOSE = re.compile(
    r'\s*\]\s*(?:,\s*"(?:kind"\s*:\s*"(?:Node)?List"|metadata"\s*:\s*\{[^{}]*\})\s*){0,2}\}\s*\Z'
)
_NEXT = re.compile(r"\s*,\s*")
_CLOSE = re.compile(r"\s*\]\s*\}\s*\Z")


KUBECTL_ITEMS = "items"


def _read_nothing(_text: str, _place: int) -> None:
    return None


def stream_rows(
    text: str,
    key: str,
    build: Callable[[list[tuple[str, Any]]], object] | None = None,
    read: Callable[[str, int], tuple[object, int] | None] = _read_nothing,
) -> Iterator[object]:
    """Yield the rows of a JSON document whose only key is `key`, a list that is not empty.

    `KUBECTL_ITEMS` are the items of a list as kubectl prints it, with its other keys.

    Args:
        text: the document; if it has another form, no row is yielded before the error.
        key: the only key.
        build: builds an object from its pairs; None: a dict.
        read: returns the row at a place of the text and its end, or None to leave it to `build`.

    Raises:
        ValueError: the document has another form, or is no JSON; also after some rows.
        RecursionError: a row is nested too deeply.
    """
    is_list = key == KUBECTL_ITEMS
    opened = (_LIST_OPEN if is_list else _OPEN).match(text)
    if opened is None or opened[1] != key:
        raise ValueError(f"expected an object with the list {key} alone")
    decode = json.JSONDecoder(object_pairs_hook=build).raw_decode
    place = opened.end()
    while True:
        row, place = read(text, place) or decode(text, place)
        yield row
        following = _NEXT.match(text, place)
        if following is None:
            break
        place = following.end()
    if (_LIST_CLOSE if is_list else _CLOSE).match(text, place) is None:
        raise ValueError(f"expected the end of the list {key}")
