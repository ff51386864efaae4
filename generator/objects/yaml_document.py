"""Parses JSON or YAML text into plain documents, with limited depth, no tags and no aliases.

Files may come from anywhere, and PyYAML's own loaders are not safe enough for that: the C loader
crashes the interpreter on deep nesting, aliases expand without limit, tags raise unexpected
errors, and YAML 1.1 reads an unquoted MAC as a number in base 60 and a time as a date. So this
module builds documents from the parser's events, with JSON's scalars only. It tries the json
module first on text that starts with `{`, which is about 50 times faster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

import yaml

from topology.model.errors import ConfigError, ParseError, show

MAX_DEPTH: Final = 64
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN_TAGS: Final = frozenset({None, "!", "tag:yaml.org,2002:str"})
_COLLECTION_TAGS: Final = frozenset({None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})
_DEPTH_CHANGES: Final[Mapping[type[yaml.Event], int]] = {
    yaml.MappingStartEvent: 1,
    yaml.SequenceStartEvent: 1,
    yaml.MappingEndEvent: -1,
    yaml.SequenceEndEvent: -1,
}
"""How an event changes the depth."""
_CONSTANTS: Final = {"": None, "~": None, "null": None, "true": True, "false": False}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})\Z")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,4})?\Z")


class _TextPosition(Protocol):
    """A position in the text; the C parser and the Python parser each have their own type."""

    line: int
    """0-based."""


class YamlDocument(NamedTuple):
    """One decoded document of a file."""

    value: Any
    """Mappings with text keys, lists, text, numbers, booleans and None."""
    line: int
    """1-based, where it starts."""


def parse_documents(raw: bytes, *, source: str) -> Iterator[YamlDocument | ParseError]:
    """Yield the documents of UTF-8 JSON or YAML, and an error for each refused document.

    After a syntax error or too deep nesting, the rest of the file is not read; after any other
    error the next document is. Empty documents are left out. Each member of a `kind: List` is
    yielded as a document. Cost: O(bytes); YAML about 1 MB/s.
    """
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        yield ParseError(f"not UTF-8 at byte {error.start}", source=source)
        return
    for document in _parse_json(text, source) or _parse_yaml(text, source):
        if isinstance(document, ParseError):
            yield document
        else:
            yield from _expand_list(document)


def parse_document(raw: bytes, *, source: str) -> YamlDocument:
    """Return the single document of a configuration file.

    Raises:
        ConfigError: the file has no document, several, or a refused one.
    """
    documents = list(parse_documents(raw, source=source))
    for document in documents:
        if isinstance(document, ParseError):
            raise ConfigError(str(document))
        if len(documents) == 1:
            return document
    raise ConfigError(f"{source}: expected one document, got {len(documents)}")


def _expand_list(document: YamlDocument) -> Iterator[YamlDocument]:
    value = document.value
    kind, items = (value.get("kind"), value.get("items")) if isinstance(value, dict) else ("", "")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        yield from (YamlDocument(item, document.line) for item in items)
    elif value is not None:
        yield document


def _parse_json(text: str, source: str) -> list[YamlDocument | ParseError]:
    """Return the document of a JSON text; empty if the text may be YAML."""
    if not text.lstrip().startswith("{"):
        return []
    try:
        return [YamlDocument(json.loads(text), 1)]
    except RecursionError:
        return [ParseError("nested too deeply", source=source)]
    except ValueError:
        return []  # a flow mapping of YAML, or several documents; YAML's error names the line


def _parse_yaml(text: str, source: str) -> Iterator[YamlDocument | ParseError]:
    try:
        yield from _build_documents(yaml.parse(text, Loader=_LOADER), source)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        yield ParseError(show(f"not YAML: {error.problem}"), source=source, line=_line_number(mark))
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        yield ParseError(show(f"not YAML: {reason}"), source=source)


def _build_documents(
    events: Iterable[yaml.Event], source: str
) -> Iterator[YamlDocument | ParseError]:
    builder = _DocumentBuilder()
    start, depth = 1, 0
    for event in events:
        depth += _DEPTH_CHANGES.get(type(event), 0)
        if depth > MAX_DEPTH:
            # libyaml needs quadratic time for deep flow collections, so reading stops here,
            # even within a document that is refused already.
            line = _line_number(event.start_mark)
            yield ParseError(f"nested deeper than {MAX_DEPTH}", source=source, line=line)
            return
        if isinstance(event, yaml.DocumentStartEvent):
            builder = _DocumentBuilder()
            start = _line_number(event.end_mark)
        elif isinstance(event, yaml.DocumentEndEvent):
            if builder.problem:
                yield ParseError(builder.problem, source=source, line=builder.line)
            else:
                yield YamlDocument(builder.value, start)
        elif not builder.problem:
            builder.problem = builder.add(event)
            builder.line = _line_number(event.start_mark)


def _line_number(mark: _TextPosition | None) -> int:
    return 1 if mark is None else mark.line + 1


class _DocumentBuilder:
    """Builds one document without recursion."""

    def __init__(self) -> None:
        self.value: Any = None
        self.problem = ""
        """Why the document is refused; empty if it is not."""
        self.line = 1
        """Line of the last event."""
        self._open: list[dict[str, Any] | list[Any]] = []
        self._keys: list[str | None] = []
        """For each open container, the key whose value comes next."""

    def add(self, event: yaml.Event) -> str:
        """Add the next event; return the problem with it, empty if there is none."""
        if isinstance(event, yaml.ScalarEvent):
            if event.tag not in _PLAIN_TAGS:
                return f"tag {show(str(event.tag))} is not accepted"
            return self._add_scalar(event)
        if isinstance(event, yaml.CollectionStartEvent):
            container: dict[str, Any] | list[Any] = (
                {} if isinstance(event, yaml.MappingStartEvent) else []
            )
            if event.tag not in _COLLECTION_TAGS:
                return f"tag {show(str(event.tag))} is not accepted"
            problem = self._attach(container)
            self._open.append(container)
            self._keys.append(None)
            return problem
        if isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()
            self._keys.pop()
        elif isinstance(event, yaml.AliasEvent):
            return "aliases are not accepted"
        return ""

    def _add_scalar(self, event: yaml.ScalarEvent) -> str:
        parent = self._open[-1] if self._open else None
        if isinstance(parent, dict) and self._keys[-1] is None:
            if event.value in parent:
                return f"key {show(event.value)} given twice"
            self._keys[-1] = event.value
            return ""
        is_plain = event.implicit[0] and event.tag is None
        return self._attach(_resolve_scalar(event.value) if is_plain else event.value)

    def _attach(self, value: object) -> str:
        if not self._open:
            self.value = value
            return ""
        parent = self._open[-1]
        if isinstance(parent, list):
            parent.append(value)
            return ""
        key, self._keys[-1] = self._keys[-1], None
        if key is None:
            return "keys must be text"
        parent[key] = value
        return ""


def _resolve_scalar(text: str) -> object:
    """Return the value of a plain scalar: a JSON constant or number, else text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.match(text):
        return int(text)
    return float(text) if _FLOAT.match(text) else text
