"""Parses JSON or YAML text into plain documents, with limited depth and size, and no tags.

Files may come from anywhere, and PyYAML's own loaders are not safe enough for that: the C loader
crashes the interpreter on deep nesting, aliases expand without limit, tags raise unexpected
errors, and YAML 1.1 reads an unquoted MAC as a number in base 60 and a time as a date. So this
module builds documents from the parser's events, with JSON's scalars only. It tries the json
module first on text that starts with `{`, which is about 50 times faster.

Anchors, aliases and merge keys (`<<`) are accepted as kubectl accepts them. An alias is the value
itself and not a copy, but a reader walks through it each time; so what all aliases of a file stand
for is limited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
        is_lenient: whether a repeated key or a tag costs its value (of a repeated key the first
            value counts) instead of the document.
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
    content = text.rstrip()
    if not content or content.endswith(("}", "]", "'", '"')):
        return ""
    if not text.endswith(("\n", "\r")):
        return "its last line has no line break"
    last = content.splitlines()[-1].partition(" #")[0].strip()
    return "its last line has no value" if last.endswith(":") or last == "-" else ""


def parse_document(raw: bytes, *, source: str) -> YamlDocument:
    """Return the single document of a configuration file.

    Raises:
        ConfigError: the file has no document, several, or a refused one.
    """
    documents: list[YamlDocument] = []
    for document in parse_documents(raw, source=source):
        if isinstance(document, ParseError):
            raise ConfigError(str(document))
        documents.append(document)
    if len(documents) != 1:
        raise ConfigError(f"{source}: expected one document, {describe_documents(documents)}")
    return documents[0]


def describe_documents(documents: Sequence[YamlDocument]) -> str:
    """Return which documents were found, as a part of a sentence."""
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
    kind, items = (value.get("kind"), value.get("items")) if isinstance(value, dict) else ("", "")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        own = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
        implied = {key: word for key, word in own.items() if word} if own["kind"] else {}
        faults = index_faults(document.faults, "items")
        for index, item in enumerate(items):
            member = implied | item if isinstance(item, dict) else item
            yield YamlDocument(member, document.line, faults.get(index, ()))
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
    """Return the documents of a JSON text; empty if the text may be YAML or has repeated keys.

    Several objects may follow one another, as several calls of kubectl write them to one file.
    """
    if not text.lstrip().startswith("{"):
        return []
    # A repeated key is left to YAML's parser, which knows its path.
    decoder = json.JSONDecoder(object_pairs_hook=refuse_repeated if is_lenient else None)
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
        return []  # a flow mapping of YAML; YAML's error names the line
    return documents


def _skip_blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return place if found is None else found.end()


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
    aliases = _AliasAllowance()
    builder = _DocumentBuilder(aliases, is_lenient=is_lenient)
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
            builder = _DocumentBuilder(aliases, is_lenient=is_lenient)
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


@dataclass(slots=True)
class _AliasAllowance:
    """How many more values the aliases of a file may stand for."""

    left: int = MAX_ALIASED


@dataclass(frozen=True, slots=True)
class _Anchored:
    """What an alias stands for."""

    value: Any
    size: int = 1
    """Number of values in it, with those that its own aliases stand for."""
    height: int = 0
    """Levels of containers in it."""
    faults: tuple[ValueFault, ...] = ()
    """The values that were left out of it, with their paths in it."""
    problem: str = ""
    """Why it is left out itself; empty if it is not."""


@dataclass(slots=True)
class _OpenContainer:
    """A mapping or a list whose end was not read yet."""

    value: dict[str, Any] | list[Any]
    path: tuple[str | int, ...]
    anchor: str | None
    problem: str
    """Why it is left out; empty if it is not."""
    first_size: int
    """Number of values before it."""
    first_fault: int
    key: str | None = None
    """The key whose value comes next."""
    is_merging: bool = False
    """Whether that key is the merge key."""
    merged: list[Any] | None = None
    """The value of its merge key, as a list of mappings."""
    height: int = 1


class _DocumentBuilder:
    """Builds one document without recursion."""

    def __init__(self, aliases: _AliasAllowance, *, is_lenient: bool) -> None:
        self.value: Any = None
        self.problem = ""
        """Why the document is refused; empty if it is not."""
        self.line = 1
        """Line of the last event."""
        self.faults: list[ValueFault] = []
        """The values that were left out."""
        self._aliases = aliases
        self._is_lenient = is_lenient
        self._open: list[_OpenContainer] = []
        self._anchors: dict[str, _Anchored | None] = {}
        """By name; None within the value that has the anchor."""
        self._size = 0
        """Number of values so far."""

    def add(self, event: yaml.Event) -> str:
        """Add the next event; return the problem with it, empty if there is none."""
        if isinstance(event, yaml.ScalarEvent):
            return self._add_scalar(event)
        if isinstance(event, yaml.CollectionStartEvent):
            return self._start_container(event)
        if isinstance(event, yaml.CollectionEndEvent):
            return self._end_container()
        return self._add_alias(event.anchor or "") if isinstance(event, yaml.AliasEvent) else ""

    @property
    def _is_key(self) -> bool:
        """Whether a key comes next."""
        parent = self._open[-1] if self._open else None
        return parent is not None and isinstance(parent.value, dict) and parent.key is None

    def _next_path(self) -> tuple[str | int, ...]:
        """Return the path of the value that comes next."""
        if not self._open:
            return ()
        parent = self._open[-1]
        is_list = isinstance(parent.value, list)
        return (*parent.path, len(parent.value) if is_list else parent.key or "")

    def _refuse(self, problem: str) -> str:
        """Leave the next value out if the document is lenient, else return the problem."""
        if not self._is_lenient or not self._open or self._is_key or self._open[-1].is_merging:
            return problem
        self.faults.append(ValueFault(self._next_path(), problem))
        self._open[-1].key = None
        return ""

    def _add_scalar(self, event: yaml.ScalarEvent) -> str:
        is_plain = event.implicit[0] and event.tag is None
        problem = "" if event.tag in _PLAIN_TAGS else _describe_tag(event.tag)
        is_text = not is_plain or self._is_key
        value: object = event.value if is_text else _resolve_scalar(event.value)
        size = 1 + len(event.value) // _CHARS_PER_VALUE
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, size, problem=problem)
        if problem:
            return self._refuse(problem)
        if self._is_key:
            return self._set_key(event.value, is_merging=is_plain and event.value == _MERGE_KEY)
        return self._attach(value, size)

    def _start_container(self, event: yaml.CollectionStartEvent) -> str:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        problem = "" if event.tag in _COLLECTION_TAGS else _describe_tag(event.tag)
        started = _OpenContainer(
            {} if is_mapping else [],
            self._next_path(),
            event.anchor,
            problem,
            first_size=self._size,
            first_fault=len(self.faults),
        )
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        refusal = self._refuse(problem) if problem else self._attach(started.value, 1)
        self._open.append(started)
        return refusal

    def _end_container(self) -> str:
        ended = self._open.pop()
        problem = "" if ended.merged is None else self._merge(ended, ended.merged)
        if self._open:
            self._open[-1].height = max(self._open[-1].height, ended.height + 1)
        if ended.anchor is not None:
            faults = [
                fault._replace(path=fault.path[len(ended.path) :])
                for fault in self.faults[ended.first_fault :]
            ]
            self._anchors[ended.anchor] = _Anchored(
                ended.value,
                self._size - ended.first_size,
                ended.height,
                () if ended.problem else tuple(faults),
                ended.problem,
            )
        return problem

    def _add_alias(self, name: str) -> str:
        """Add the value of an anchor, as the parsers of Kubernetes do."""
        anchored = self._anchors.get(name)
        if anchored is None:
            is_inside = name in self._anchors
            where = "stands inside its own value" if is_inside else "has no anchor before it"
            return f"alias *{show(name, 64)} {where}"
        if anchored.problem:
            return self._refuse(anchored.problem)
        if self._is_key:
            text = anchored.value
            return self._set_key(text) if isinstance(text, str) else "keys must be text"
        if len(self._open) + anchored.height > MAX_DEPTH:
            return f"alias *{show(name, 64)}: nested deeper than {MAX_DEPTH}"
        self._aliases.left -= anchored.size
        if self._aliases.left < 0:
            return f"the aliases of the file stand for more than {MAX_ALIASED} values"
        path = self._next_path()
        self.faults += (fault._replace(path=(*path, *fault.path)) for fault in anchored.faults)
        if self._open:
            self._open[-1].height = max(self._open[-1].height, anchored.height + 1)
        return self._attach(anchored.value, anchored.size)

    def _set_key(self, text: str, *, is_merging: bool = False) -> str:
        parent = self._open[-1]
        parent.key, parent.is_merging = text, is_merging
        is_repeated = parent.merged is not None if is_merging else text in parent.value
        if not is_repeated:
            return ""
        problem = f"key {show(text)} given twice"
        if not self._is_lenient:
            return problem
        self.faults.append(ValueFault(self._next_path(), f"{problem}; the first value counts"))
        return ""

    def _attach(self, value: object, size: int) -> str:
        self._size += size
        if not self._open:
            self.value = value
            return ""
        parent = self._open[-1]
        if isinstance(parent.value, list):
            parent.value.append(value)
            return ""
        key, parent.key = parent.key, None
        if key is None:
            return "keys must be text"
        if not parent.is_merging:
            parent.value.setdefault(key, value)
        elif parent.merged is None:
            parent.merged = value if isinstance(value, list) else [value]
        parent.is_merging = False
        return ""

    def _merge(self, mapping: _OpenContainer, sources: Sequence[Any]) -> str:
        """Add the keys of other mappings that a mapping lacks; the first source counts."""
        own = mapping.value
        if not isinstance(own, dict) or not all(isinstance(one, dict) for one in sources):
            return f"{_MERGE_KEY}: expected a mapping, or a list of mappings"
        own_keys = frozenset(own)
        for source in sources:
            for key, value in source.items():
                own.setdefault(key, value)
        return self._move_faults(mapping, own_keys)

    def _move_faults(self, mapping: _OpenContainer, own_keys: Collection[str]) -> str:
        """Give the faults below a merge key the paths of the keys that were merged."""
        base = (*mapping.path, _MERGE_KEY)
        faults = self.faults[mapping.first_fault :]
        del self.faults[mapping.first_fault :]
        for fault in faults:
            rest = fault.path[len(base) :]
            if fault.path[: len(base)] != base or not rest:
                self.faults.append(fault)  # such as a second merge key
                continue
            rest = rest[1:] if isinstance(rest[0], int) else rest
            if not rest:
                return f"{_MERGE_KEY}: {fault.problem}"
            if rest[0] not in own_keys:
                self.faults.append(fault._replace(path=(*mapping.path, *rest)))
        return ""


def _describe_tag(tag: str | None) -> str:
    return f"tag {show(str(tag))} is not accepted"


def _resolve_scalar(text: str) -> object:
    """Return the value of a plain scalar: a JSON constant or number, else text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.match(text):
        return int(text)
    return float(text) if _FLOAT.match(text) else text
