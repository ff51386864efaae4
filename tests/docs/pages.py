"""The pages, and the commands that stand in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.repository import ROOT

PAGES = sorted(
    path
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
    if "reference" not in path.parts
)
KUBE = re.compile(r"(?:kubectl|toponaut .*--kube)\b")
"""Lines that need a cluster."""
_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_PROMPT = re.compile(r"^\$ ")
_COMMENT = re.compile(r"\s+#.*$")
_OURS = re.compile(r"(?:^|[|;] *|&& *|sudo +)((?:kubectl )?toponaut(?:-agent)?(?: .*)?)$")


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    shown: str = ""
    """What the page says that it prints: the block without a language that follows at once."""


class Command(NamedTuple):
    """A command line of ours in a page."""

    page: str
    line: int
    text: str


def read_blocks(path: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    text = path.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        after = _FENCE.match(text, found.end() + 1)
        shown = after[2] if after and not after[1] else ""
        yield Block(str(path.relative_to(ROOT)), line, found[1], found[2], shown)


def read_commands() -> Iterator[Command]:
    """Yield each of our command lines in blocks and in code spans of all pages."""
    for path in PAGES:
        name = str(path.relative_to(ROOT))
        text = path.read_text(encoding="utf-8")
        for block in read_blocks(path):
            for number, line in enumerate(_join_lines(block.text), block.line + 1):
                yield from _find_ours(name, number, line)
        plain = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)
        for number, line in enumerate(plain.splitlines(), 1):
            for span in _SPAN.finditer(line):
                yield from _find_ours(name, number, span[1])


def _join_lines(text: str) -> list[str]:
    return [line.strip() for line in text.replace("\\\n", " ").splitlines()]


def _find_ours(page: str, number: int, line: str) -> Iterator[Command]:
    found = _OURS.search(_COMMENT.sub("", _PROMPT.sub("", line)))
    if found:
        yield Command(page, number, found[1].strip())
