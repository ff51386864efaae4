"""The stored inputs: one file per parser, one input per line in base64."""

from __future__ import annotations

import base64
import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from tests.fuzz.seeds import FIXTURES
from tests.fuzz.targets import TARGETS, Target
from tests.fuzz.verdicts import judge
from tests.repository import ROOT

MAX_KEPT: Final = 100
MAX_KEPT_BYTES: Final = 2048
"""Maximum size of one stored input; the seeds have the long inputs."""
_OURS: Final = tuple(f"{ROOT / name}/" for name in ("agent", "generator", "topology"))
_Arc = tuple[str, int, int]
_Feature = tuple[_Arc, int]
"""A step from line to line, and its count as a power of two, as libFuzzer counts."""


def corpus_file(name: str) -> Path:
    """Return the file with the stored inputs of a parser."""
    return FIXTURES / "fuzz" / f"{name}.txt"


def read_corpus(name: str) -> list[bytes]:
    """Return the stored inputs of a parser; lines that start with # are comments."""
    file = corpus_file(name)
    lines = file.read_text(encoding="ascii").splitlines() if file.exists() else []
    return [base64.b64decode(line) for line in lines if not line.startswith("#")]


def write_corpus(name: str, kept: Iterable[bytes]) -> None:
    """Store the inputs of a parser, the shortest first."""
    ordered = sorted(set(kept), key=lambda raw: (len(raw), raw))
    lines = [base64.b64encode(raw).decode("ascii") for raw in ordered]
    file = corpus_file(name)
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")


def unpack(folder: Path, inputs: Iterable[bytes]) -> None:
    """Write inputs to a folder, one file per input, as libFuzzer reads them."""
    for raw in inputs:
        (folder / hashlib.sha256(raw).hexdigest()[:16]).write_bytes(raw)


def choose(name: str, kept: Iterable[bytes], found: Iterable[bytes]) -> list[bytes]:
    """Return the inputs to store: all stored inputs, and found inputs that reach new code."""
    target = TARGETS[name]
    chosen = list(kept)
    reached: set[_Feature] = set()
    for raw in (*target.seeds(), *chosen):
        reached |= _features(target, raw)
    small = {raw for raw in found if len(raw) <= MAX_KEPT_BYTES}
    for raw in sorted(small, key=lambda item: (len(item), item)):
        if len(chosen) >= MAX_KEPT:
            break
        features = _features(target, raw)
        if not features <= reached:
            reached |= features
            chosen.append(raw)
    return chosen


def _features(target: Target, raw: bytes) -> set[_Feature]:
    with _counting() as counts:
        judge(target, raw)
    return {(arc, count.bit_length()) for arc, count in counts.items()}


@contextmanager
def _counting() -> Iterator[Counter[_Arc]]:
    """Count the steps from line to line in this repository's code while the block runs."""
    counts: Counter[_Arc] = Counter()
    last: dict[int, int] = {}

    def trace(frame: FrameType, event: str, _arg: object) -> object:
        if not frame.f_code.co_filename.startswith(_OURS):
            return None
        if event == "call":
            last[id(frame)] = 0
        counts[frame.f_code.co_filename, last.get(id(frame), 0), frame.f_lineno] += 1
        last[id(frame)] = frame.f_lineno
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        yield counts
    finally:
        sys.settrace(before)
