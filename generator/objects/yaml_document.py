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
from topology.model.text import decode_text

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


class ValueFault(NamedTuple):
    """A value that is left out of a document."""

    path: tuple[str | int, ...]
    """Keys of mappings and indexes of lists; an item that is left out has no index of its own."""
    problem: str


class YamlDocument(NamedTuple):
    """One decoded document of a file."""

    value: Any
    """Mappings with text keys, lists, text, numbers, booleans and None."""
    line: int
    """1-based, where it starts."""
    faults: tuple[ValueFault, ...] = ()
    """Values that were left out; empty unless the document was parsed leniently."""


def parse_documents(
    raw: bytes, *, source: str, is_lenient: bool = False
) -> Iterator[YamlDocument | ParseError]:
    """Yield the documents of JSON or YAML, and an error for each refused document.

    After a syntax error or too deep nesting, the rest of the file is not read; after any other
    error the next document is. Empty documents are left out. Each member of a `kind: List` is
    yielded as a document. Cost: O(bytes); YAML about 1 MB/s.

    Args:
        raw: UTF-8, or UTF-16 with a byte order mark.
        source: names the file in errors.
        is_lenient: whether a repeated key, an alias or a tag costs its value (of a repeated key
            the first value counts) instead of the document.
    """
    try:
        text = decode_text(raw)
    except UnicodeDecodeError as error:
        yield ParseError(f"not {error.encoding.upper()} at byte {error.start}", source=source)
        return
    documents = _parse_json(text, source, is_lenient=is_lenient)
    for document in documents or _parse_yaml(text, source, is_lenient=is_lenient):
        if isinstance(document, ParseError):
            yield document
        else:
            yield from _expand_list(document)


def describe_cut_end(raw: bytes) -> str:
    """Return why text in YAML's block form may be cut, as a part of a sentence; empty if it ends.

    Its last line has no line break, or is a key or a dash without a value. The other forms have a
    closing bracket, and a cut within quotes is an error of its own. A cut between two whole lines
    does not show.
    """
    try:
        text = decode_text(raw)
    except UnicodeDecodeError:
        return ""
    lines = text.rstrip().splitlines()[-1:]
    if not lines or lines[0].endswith(("}", "]", "'", '"')):
        return ""
    if not text.endswith(("\n", "\r")):
        return "its last line has no line break"
    last = lines[0].partition(" #")[0].strip()
    return "its last line has no value" if last.endswith(":") or last == "-" else ""


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
        faults = index_faults(document.faults, "items")
        yield from (
            YamlDocument(item, document.line, faults.get(index, ()))
            for index, item in enumerate(items)
        )
    elif value is not None:
        yield document


def index_faults(faults: Iterable[ValueFault], key: str) -> dict[str | int, tuple[ValueFault, ...]]:
    """Return the faults below `key` by the next step of their path, and with the rest of it."""
    found: dict[str | int, tuple[ValueFault, ...]] = {}
    for fault in faults:
        if len(fault.path) > 1 and fault.path[0] == key:
            inner = fault._replace(path=fault.path[2:])
            found[fault.path[1]] = (*found.get(fault.path[1], ()), inner)
    return found


class _RepeatedKeyError(ValueError):
    """A JSON object has one key twice."""


def refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object from its pairs.

    Raises:
        ValueError: a key is repeated.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedKeyError
    return found


def _parse_json(text: str, source: str, *, is_lenient: bool) -> list[YamlDocument | ParseError]:
    """Return the document of a JSON text; empty if the text may be YAML or has repeated keys."""
    if not text.lstrip().startswith("{"):
        return []
    try:
        # A repeated key is left to YAML's parser, which knows its path.
        hook = refuse_repeated if is_lenient else None
        return [YamlDocument(json.loads(text, object_pairs_hook=hook), 1)]
    except RecursionError:
        return [ParseError("nested too deeply", source=source)]
    except ValueError:
        return []  # a flow mapping of YAML, or several documents; YAML's error names the line


def _parse_yaml(text: str, source: str, *, is_lenient: bool) -> Iterator[YamlDocument | ParseError]:
    try:
        events = yaml.parse(text, Loader=_LOADER)
        yield from _build_documents(events, source, is_lenient=is_lenient)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        yield ParseError(show(f"not YAML: {error.problem}"), source=source, line=_line_number(mark))
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        yield ParseError(show(f"not YAML: {reason}"), source=source)


def _build_documents(
    events: Iterable[yaml.Event], source: str, *, is_lenient: bool
) -> Iterator[YamlDocument | ParseError]:
    builder = _DocumentBuilder(is_lenient=is_lenient)
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
            builder = _DocumentBuilder(is_lenient=is_lenient)
            start = _line_number(event.end_mark)
        elif isinstance(event, yaml.DocumentEndEvent):
            if builder.problem:
                yield ParseError(builder.problem, source=source, line=builder.line)
            else:
                yield YamlDocument(builder.value, start, tuple(builder.faults))
        elif not builder.problem:
            builder.problem = builder.add(event)
            builder.line = _line_number(event.start_mark)


def _line_number(mark: _TextPosition | None) -> int:
    return 1 if mark is None else mark.line + 1


class _DocumentBuilder:
    """Builds one document without recursion."""

    def __init__(self, *, is_lenient: bool) -> None:
        self.value: Any = None
        self.problem = ""
        """Why the document is refused; empty if it is not."""
        self.line = 1
        """Line of the last event."""
        self.faults: list[ValueFault] = []
        """The values that were left out."""
        self._is_lenient = is_lenient
        self._open: list[dict[str, Any] | list[Any]] = []
        self._keys: list[str | None] = []
        """For each open container, the key whose value comes next."""
        self._paths: list[tuple[str | int, ...]] = []
        """For each open container, its path."""

    def add(self, event: yaml.Event) -> str:
        """Add the next event; return the problem with it, empty if there is none."""
        if isinstance(event, yaml.ScalarEvent):
            if event.tag not in _PLAIN_TAGS:
                return self._refuse(f"tag {show(str(event.tag))} is not accepted")
            return self._add_scalar(event)
        if isinstance(event, yaml.CollectionStartEvent):
            container: dict[str, Any] | list[Any] = (
                {} if isinstance(event, yaml.MappingStartEvent) else []
            )
            path = self._next_path()
            if event.tag not in _COLLECTION_TAGS:
                problem = self._refuse(f"tag {show(str(event.tag))} is not accepted")
            else:
                problem = self._attach(container)
            self._open.append(container)
            self._keys.append(None)
            self._paths.append(path)
            return problem
        if isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()
            self._keys.pop()
            self._paths.pop()
        elif isinstance(event, yaml.AliasEvent):
            return self._refuse("aliases are not accepted")
        return ""

    def _next_path(self) -> tuple[str | int, ...]:
        """Return the path of the value that comes next."""
        if not self._open:
            return ()
        parent, key = self._open[-1], self._keys[-1]
        return (*self._paths[-1], len(parent) if isinstance(parent, list) else key or "")

    def _refuse(self, problem: str) -> str:
        """Leave the next value out if the document is lenient, else return the problem."""
        is_key = bool(self._open) and isinstance(self._open[-1], dict) and self._keys[-1] is None
        if not self._is_lenient or not self._open or is_key:
            return problem
        self.faults.append(ValueFault(self._next_path(), problem))
        self._keys[-1] = None
        return ""

    def _add_scalar(self, event: yaml.ScalarEvent) -> str:
        parent = self._open[-1] if self._open else None
        if isinstance(parent, dict) and self._keys[-1] is None:
            self._keys[-1] = event.value
            if event.value not in parent:
                return ""
            problem = f"key {show(event.value)} given twice"
            if not self._is_lenient:
                return problem
            self.faults.append(ValueFault(self._next_path(), f"{problem}; the first value counts"))
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
        parent.setdefault(key, value)
        return ""


def _resolve_scalar(text: str) -> object:
    """Return the value of a plain scalar: a JSON constant or number, else text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.match(text):
        return int(text)
    return float(text) if _FLOAT.match(text) else text
