"""Parses JSON or YAML text into plain documents, with limited depth and size, and no tags.

Files may come from anywhere, and PyYAML's own loaders are not safe enough for that: the C loader
crashes the interpreter on deep nesting, aliases expand without limit, tags raise unexpected
errors, and YAML 1.1 reads an unquoted MAC as a number in base 60 and a time as a date. So this
module builds documents from the parser's events, with JSON's scalars only. It tries the json
module first on text that starts with `{`, which is about 50 times faster.

Anchors, aliases and merge keys (`<<`) are accepted as kubectl accepts them. An alias is the value
itself and not a copy, but a reader walks through it each time; so the total size of the values that
a file's aliases repeat is limited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import yaml

from topology.model.errors import ConfigError, ParseError, list_some, show
from topology.model.text import decode_text

MAX_DEPTH: Final = 64
MAX_ALIASED: Final = 1_000_000
"""Values that the aliases of a file may stand for; a long text counts as several."""
_CHARS_PER_VALUE: Final = 100
_MERGE_KEY: Final = "<<"
"""Source: yaml.org/type/merge.html."""
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_DESCRIBED: Final = 4
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
_BLANKS = re.compile(r"[ \t\r\n]*")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})\Z")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,4})?\Z")


class _TextPosition(Protocol):
    """A position in the text; the C parser and the Python parser each have their own type."""

    line: int
    """0-based."""


class Refused(NamedTuple):
    """A value that is refused, at its place in a document that was parsed leniently."""

    problem: str
    kept: Any = None
    """The first value of a repeated key, which counts; None for any other value."""


class YamlDocument(NamedTuple):
    """One decoded document of a file."""

    value: Any
    """Mappings with text keys, lists, text, numbers, booleans and None."""
    line: int
    """1-based, where it starts."""
    has_refused: bool = False
    """Whether `Refused` stands in place of some values; only if it was parsed leniently."""


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
        is_lenient: whether a repeated key or a tag costs its value instead of the document.
    """
    try:
        text = decode_text(raw)
    except UnicodeDecodeError as error:
        yield ParseError(f"not {error.encoding.upper()} at byte {error.start}", source=source)
        return
    documents = _parse_json(text, source)
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
    content = text.rstrip()
    if not content or content.endswith(("}", "]", "'", '"')):
        return ""
    if not text.endswith(("\n", "\r")):
        return "its last line has no line break"
    last = content.splitlines()[-1].partition(" #")[0].strip()
    return "its last line has no value" if last.endswith(":") or last == "-" else ""


def list_documents(raw: bytes, *, source: str) -> list[YamlDocument]:
    """Return the documents of a file.

    Raises:
        ConfigError: one of them is refused.
    """
    documents: list[YamlDocument] = []
    for document in parse_documents(raw, source=source):
        if isinstance(document, ParseError):
            raise ConfigError(str(document))
        documents.append(document)
    return documents


def parse_document(raw: bytes, *, source: str) -> YamlDocument:
    """Return the single document of a configuration file.

    Raises:
        ConfigError: the file does not have exactly one document, or the document is refused.
    """
    documents = list_documents(raw, source=source)
    if len(documents) != 1:
        raise ConfigError(f"{source}: expected one document, {describe_documents(documents)}")
    return documents[0]


def describe_documents(documents: Sequence[YamlDocument]) -> str:
    """Return a part of a sentence that names the documents of a file."""
    if not documents:
        return "got none"
    named = (f"{_describe(document.value)} at line {document.line}" for document in documents)
    return f"got {len(documents)}: {list_some(named, _MAX_DESCRIBED)}"


def _describe(value: object) -> str:
    """Return the kind and the name of an object, else its first keys."""
    if not isinstance(value, Mapping):
        return "a document that is no object"
    metadata = value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    words = [str(word) for word in (value.get("kind"), name) if word]
    keys = ", ".join(list(value)[:_MAX_DESCRIBED])
    return show(" ".join(words) or f"an object with the keys {keys}", 120)


def _expand_list(document: YamlDocument) -> Iterator[YamlDocument]:
    """Yield the items of a list object, or any other document unless it is empty.

    An item of a typed list, such as NodeList, gets the list's apiVersion, and its kind without
    `List`, if it has none.
    """
    value = document.value
    parts = value if isinstance(value, dict) else {}
    kind, items, version = (usable(parts.get(key)) for key in ("kind", "items", "apiVersion"))
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        own = {"apiVersion": version, "kind": kind.removesuffix("List")}
        implied = {key: word for key, word in own.items() if word} if own["kind"] else {}
        for item in items:
            member = implied | item if isinstance(item, dict) else item
            yield document._replace(value=member)
    elif value is not None:
        yield document


def usable(value: Any) -> Any:  # noqa: ANN401 - any value of a document
    """Return a value of a document; for a refused value, the one that counts instead."""
    return value.kept if isinstance(value, Refused) else value


class ValueFault(NamedTuple):
    """A part of a value that is ignored, and why."""

    path: tuple[str | int, ...]
    """Keys of mappings and indexes of lists."""
    problem: str

    def __str__(self) -> str:
        """Return `path: problem`."""
        return show(f"{'.'.join(map(str, self.path))}: {self.problem}")


def leave_out_refused(value: Any) -> tuple[Any, list[ValueFault]]:  # noqa: ANN401 - any value
    """Return a value without its refused parts, and the faults; a repeated key has its first."""
    faults: list[ValueFault] = []
    return _copy_usable(value, (), faults), faults


def _copy_usable(value: Any, path: tuple[str | int, ...], faults: list[ValueFault]) -> Any:  # noqa: ANN401
    if isinstance(value, Refused):
        faults.append(ValueFault(path, value.problem))
        return _copy_usable(value.kept, path, faults)
    if isinstance(value, dict):
        rows = [
            (key, item, _copy_usable(item, (*path, key), faults)) for key, item in value.items()
        ]
        return {key: found for key, item, found in rows if not _is_lost(item)}
    if isinstance(value, list):
        copies = [_copy_usable(item, (*path, at), faults) for at, item in enumerate(value)]
        return [copy for item, copy in zip(value, copies, strict=True) if not _is_lost(item)]
    return value


def _is_lost(value: object) -> bool:
    return isinstance(value, Refused) and value.kept is None


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


def _parse_json(text: str, source: str) -> list[YamlDocument | ParseError]:
    """Return the documents of a JSON text; empty if the text may be YAML or has repeated keys.

    Several objects may follow one another, as several calls of kubectl write them to one file.
    """
    if not text.lstrip().startswith("{"):
        return []
    # A repeated key is left to YAML's parser, which names it and its line.
    decoder = json.JSONDecoder(object_pairs_hook=refuse_repeated)
    documents: list[YamlDocument | ParseError] = []
    try:
        place = _skip_blanks(text, 0)
        while place < len(text):
            line = text.count("\n", 0, place) + 1
            value, place = decoder.raw_decode(text, place)
            documents.append(YamlDocument(value, line))
            place = _skip_blanks(text, place)
    except RecursionError:
        return [ParseError("nested too deeply", source=source)]
    except ValueError:
        return []  # a repeated key, or a flow mapping of YAML; YAML's error names the line
    return documents


def _skip_blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return place if found is None else found.end()


def _parse_yaml(text: str, source: str, *, is_lenient: bool) -> Iterator[YamlDocument | ParseError]:
    events = _limit_depth(yaml.parse(text, Loader=_LOADER))
    try:
        yield from _DocumentBuilder(events, source, is_lenient=is_lenient).build_documents()
    except _DepthError as error:
        yield ParseError(f"nested deeper than {MAX_DEPTH}", source=source, line=error.line)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        yield ParseError(show(f"not YAML: {error.problem}"), source=source, line=_line_number(mark))
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        yield ParseError(show(f"not YAML: {reason}"), source=source)


class _DocumentError(Exception):
    """A document is refused."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.problem, self.line = problem, line


class _DepthError(Exception):
    """A container is nested too deeply, so that nothing behind it is read."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def _limit_depth(events: Iterable[yaml.Event]) -> Iterator[yaml.Event]:
    """Yield events.

    libyaml needs quadratic time for deep flow collections, so reading ends there, even within a
    document that is refused already.

    Raises:
        _DepthError: a container is nested too deeply.
    """
    depth = 0
    for event in events:
        depth += _DEPTH_CHANGES.get(type(event), 0)
        if depth > MAX_DEPTH:
            raise _DepthError(_line_number(event.start_mark))
        yield event


def _line_number(mark: _TextPosition | None) -> int:
    return 1 if mark is None else mark.line + 1


class _Part(NamedTuple):
    """A value, and what an alias of it stands for."""

    value: Any
    size: int = 1
    """Number of values in it, with those that its own aliases stand for."""
    height: int = 0
    """Levels of containers in it."""


class _DocumentBuilder:
    """Builds the documents of a file. The depth of its events is limited, so it may recurse."""

    def __init__(self, events: Iterator[yaml.Event], source: str, *, is_lenient: bool) -> None:
        self._events = events
        self._source = source
        self._is_lenient = is_lenient
        self._num_left = MAX_ALIASED
        """Values that further aliases of the file may stand for."""
        self._anchors: dict[str, _Part | None] = {}
        """By name; None within the value that has the anchor."""
        self._depth = 0
        self._line = 1
        self._has_refused = False

    def build_documents(self) -> Iterator[YamlDocument | ParseError]:
        """Yield each document, or why it is refused.

        Raises:
            _DepthError: nothing behind this is read.
            yaml.YAMLError: the same.
        """
        for event in self._events:
            if not isinstance(event, yaml.DocumentStartEvent):
                continue
            start = _line_number(event.end_mark)
            self._anchors, self._depth, self._has_refused = {}, 0, False
            found: YamlDocument | ParseError
            try:
                found = YamlDocument(self._build_root(), start, self._has_refused)
            except _DocumentError as error:
                found = ParseError(error.problem, source=self._source, line=error.line)
            # The rest of the document may be malformed, which refuses it too.
            next(row for row in self._events if isinstance(row, yaml.DocumentEndEvent))
            yield found

    def _build_root(self) -> Any:  # noqa: ANN401 - a document
        event = next(self._events)
        value = self._build(event).value
        if isinstance(value, Refused):
            raise _DocumentError(value.problem, _line_number(event.start_mark))
        return value

    def _refuse(self, problem: str) -> Refused:
        """Return the placeholder of a refused value that does not cost the document.

        Raises:
            _DocumentError: the document is not read leniently.
        """
        if not self._is_lenient:
            raise self._error(problem)
        self._has_refused = True
        return Refused(problem)

    def _error(self, problem: str) -> _DocumentError:
        return _DocumentError(problem, self._line)

    def _build(self, event: Any, *, is_key: bool = False) -> _Part:  # noqa: ANN401 - of a node
        """Return the value that begins with an event.

        Raises:
            _DocumentError: the document is refused.
        """
        self._line = _line_number(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            return self._find_anchored(event.anchor or "")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            part = self._build_scalar(event, is_key=is_key)
        else:
            problem = "" if event.tag in _COLLECTION_TAGS else _describe_tag(event.tag)
            refused = self._refuse(problem) if problem else None
            self._depth += 1
            is_list = isinstance(event, yaml.SequenceStartEvent)
            part = self._build_list() if is_list else self._build_mapping()
            self._depth -= 1
            part = part if refused is None else part._replace(value=refused)
        if event.anchor is not None:
            self._anchors[event.anchor] = part
        return part

    def _build_scalar(self, event: yaml.ScalarEvent, *, is_key: bool) -> _Part:
        size = 1 + len(event.value) // _CHARS_PER_VALUE
        if event.tag not in _PLAIN_TAGS:
            return _Part(self._refuse(_describe_tag(event.tag)), size)
        is_text = is_key or not (event.implicit[0] and event.tag is None)
        return _Part(event.value if is_text else _resolve_scalar(event.value), size)

    def _build_list(self) -> _Part:
        parts: list[_Part] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            parts.append(self._build(event))
        return _wrap([part.value for part in parts], parts)

    def _build_mapping(self) -> _Part:
        parts: list[_Part] = []
        values: dict[str, Any] = {}
        merged: list[Any] | None = None
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key, is_merging = self._build_key(event), _is_merge_key(event)
            is_repeated = merged is not None if is_merging else key in values
            if is_repeated:
                problem = self._refuse(f"key {show(key)} given twice").problem
                first = usable(values.get(key))
                values[key] = Refused(f"{problem}; the first value counts", first)
            part = self._build(next(self._events))
            parts.append(part)
            if is_repeated:
                continue
            if is_merging:
                merged = part.value if isinstance(part.value, list) else [part.value]
            else:
                values[key] = part.value
        self._line = _line_number(event.start_mark)
        for source in merged or ():  # the first one counts, but own keys before all
            if not isinstance(source, dict):
                raise self._error(f"{_MERGE_KEY}: expected a mapping, or a list of mappings")
            for key, value in source.items():
                values.setdefault(key, value)
        return _wrap(values, parts)

    def _build_key(self, event: yaml.Event) -> str:
        if isinstance(event, yaml.CollectionStartEvent):
            self._line = _line_number(event.start_mark)
            raise self._error("keys must be text")
        key = self._build(event, is_key=True).value
        if not isinstance(key, str):
            raise self._error(key.problem if isinstance(key, Refused) else "keys must be text")
        return key

    def _find_anchored(self, name: str) -> _Part:
        """Return what an alias stands for, as the parsers of Kubernetes do."""
        part = self._anchors.get(name)
        if part is None:
            is_inside = name in self._anchors
            where = "stands inside its own value" if is_inside else "has no anchor before it"
            raise self._error(f"alias *{show(name, 64)} {where}")
        if self._depth + part.height > MAX_DEPTH:
            raise self._error(f"alias *{show(name, 64)}: nested deeper than {MAX_DEPTH}")
        self._num_left -= part.size
        if self._num_left < 0:
            problem = f"the aliases of the file stand for more than {MAX_ALIASED} values"
            raise self._error(problem)
        return part


def _wrap(value: object, parts: Sequence[_Part]) -> _Part:
    """Return a container of parts."""
    size = 1 + sum(part.size for part in parts)
    return _Part(value, size, 1 + max((part.height for part in parts), default=0))


def _is_merge_key(event: yaml.Event) -> bool:
    if not isinstance(event, yaml.ScalarEvent) or event.value != _MERGE_KEY:
        return False
    return event.implicit[0] and event.tag is None


def _describe_tag(tag: str | None) -> str:
    return f"tag {show(str(tag))} is not accepted"


def _resolve_scalar(text: str) -> object:
    """Return the value of a plain scalar: a JSON constant or number, else text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.match(text):
        return int(text)
    return float(text) if _FLOAT.match(text) else text
