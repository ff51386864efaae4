"""Cabling plans as Graphviz graphs: `topology.dot` of the Prescriptive Topology Manager.

Of DOT only what such plans use is read: edges between `"device":"port"` pairs. Attributes, nodes
and defaults are passed over. Unquoted names may hold hyphens, which DOT forbids and people write.

Sources: Cumulus Linux user guide, Prescriptive Topology Manager; Graphviz, The DOT Language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from topology.model.cabling_plan import PlannedCable
from topology.model.errors import ParseError

# Each alternative takes what it matched for good (`+`) and quotes are bounded: hostile text must
# not be scanned again and again.
_TOKEN: Final = re.compile(
    r"""
      (?P<skip>\s++|//[^\n]*+|^\#[^\n]*+|/\*(?:.*?\*/|.*+))
    | (?P<edge>--|->)
    | "(?P<quoted>(?:[^"\\\n]|\\.){0,260}+)"
    | (?P<word>(?:[^\s"\[\]{};:,=<>\#/\-]|/(?![/*])|-(?![->]))++)
    | (?P<mark>.)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_GRAPH: Final = re.compile(r"(?:strict\s+)?(?:di)?graph\b[^\n{]{0,200}\s*\{", re.IGNORECASE)
_HEAD_CHARS: Final = 65536
_NO_PORTS: Final = 'expected "device":"port" on both sides of an edge'
_END_TOKENS: Final = 3
"""Of `"device":"port"`."""


class _Token(NamedTuple):
    kind: str
    """`edge`, `name` or `mark`."""
    text: str
    line: int


def is_graph(text: str) -> bool:
    """Whether a text is a graph, after any comments."""
    at = 0
    while at < min(len(text), _HEAD_CHARS):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup != "skip":
            break
        at = found.end()
    return _GRAPH.match(text, at) is not None


def parse_graph(text: str) -> Iterator[PlannedCable | ParseError]:
    """Yield the cable of every edge, an error where it does not name a port at both ends."""
    tokens = list(_tokens(text))
    for at, token in enumerate(tokens):
        if token.kind == "mark" and token.text == '"':
            yield ParseError("a quote that is not closed", line=token.line)
        if token.kind != "edge":
            continue
        before = _end(tokens[max(0, at - _END_TOKENS) : at])
        after = _end(tokens[at + 1 : at + 1 + _END_TOKENS])
        if before is None or after is None:
            near = tokens[max(0, at - _END_TOKENS) : at + 1 + _END_TOKENS]
            excerpt = " ".join(one.text for one in near if one.line == token.line)
            yield ParseError(_NO_PORTS, line=token.line, excerpt=excerpt)
        else:
            yield PlannedCable(*before, *after, token.line)


def _tokens(text: str) -> Iterator[_Token]:
    """Yield tokens with their lines, those within attribute lists left out."""
    line = 1
    depth = 0
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup or "mark"
        if kind in ("quoted", "word"):
            name = re.sub(r"\\(.)", r"\1", found["quoted"]) if kind == "quoted" else found["word"]
            token = _Token("name", name, line)
        else:
            token = _Token(kind, found[0], line)
        depth = max(0, depth + {"[": 1, "]": -1}.get(token.text if kind == "mark" else "", 0))
        if depth == 0 and kind != "skip" and token.text != "]":
            yield token
        line += found[0].count("\n")


def _end(tokens: list[_Token]) -> tuple[str, str] | None:
    """Return (device, port) of three tokens, None where they are something else."""
    if [token.kind for token in tokens] != ["name", "mark", "name"] or tokens[1].text != ":":
        return None
    return tokens[0].text.strip(), tokens[2].text.strip()
