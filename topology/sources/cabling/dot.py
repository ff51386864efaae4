"""Cabling plans as Graphviz graphs: `topology.dot` of the Prescriptive Topology Manager.

Reads the part of DOT that such plans use: edges between `"device":"port"` pairs. Ignores
attributes, nodes and defaults. Unquoted names may contain hyphens: DOT forbids them, but plans
use them.

Sources: Cumulus Linux user guide, Prescriptive Topology Manager; Graphviz, The DOT Language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from topology.model.cabling_plan import PlannedCable
from topology.model.errors import ParseError

# The possessive quantifiers (`++`) never backtrack, and the length of a quoted name is bounded, so
# hostile text is not scanned repeatedly.
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
"""Tokens in `"device":"port"`."""


class _Token(NamedTuple):
    kind: str
    """`edge`, `name` or `mark`."""
    text: str
    line: int


def is_graph(text: str) -> bool:
    """Whether a text is a graph; comments may come first."""
    offset = 0
    while offset < min(len(text), _HEAD_CHARS):
        match = _TOKEN.match(text, offset)
        if match is None or match.lastgroup != "skip":
            break
        offset = match.end()
    return _GRAPH.match(text, offset) is not None


def parse_graph(text: str) -> Iterator[PlannedCable | ParseError]:
    """Yield a cable per edge, or an error if the edge does not name a port at both ends."""
    tokens = list(_tokens(text))
    for token_index, token in enumerate(tokens):
        if token.kind == "mark" and token.text == '"':
            yield ParseError("unclosed quote", line=token.line)
        if token.kind != "edge":
            continue
        before = _end(tokens[max(0, token_index - _END_TOKENS) : token_index])
        after = _end(tokens[token_index + 1 : token_index + 1 + _END_TOKENS])
        if before is None or after is None:
            edge_tokens = tokens[max(0, token_index - _END_TOKENS) : token_index + 1 + _END_TOKENS]
            excerpt = " ".join(
                edge_token.text for edge_token in edge_tokens if edge_token.line == token.line
            )
            yield ParseError(_NO_PORTS, line=token.line, excerpt=excerpt)
        else:
            yield PlannedCable(*before, *after, token.line)


def _tokens(text: str) -> Iterator[_Token]:
    """Yield tokens with their lines; skips attribute lists."""
    line = 1
    depth = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "mark"
        if kind in ("quoted", "word"):
            name = re.sub(r"\\(.)", r"\1", match["quoted"]) if kind == "quoted" else match["word"]
            token = _Token("name", name, line)
        else:
            token = _Token(kind, match[0], line)
        depth = max(0, depth + {"[": 1, "]": -1}.get(token.text if kind == "mark" else "", 0))
        if depth == 0 and kind != "skip" and token.text != "]":
            yield token
        line += match[0].count("\n")


def _end(tokens: list[_Token]) -> tuple[str, str] | None:
    """Return (device, port) of three tokens, None if they are not `device:port`."""
    if [token.kind for token in tokens] != ["name", "mark", "name"] or tokens[1].text != ":":
        return None
    return tokens[0].text.strip(), tokens[2].text.strip()
