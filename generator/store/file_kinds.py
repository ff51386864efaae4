"""What a file is, for the one line that answers a file of another format than was expected.

Looks at the first bytes only, and only after a reader has refused the file.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final

from topology.model.errors import ConfigError, show
from topology.model.text import to_utf8
from topology.sources.unsupported_formats import explain_output

_HEAD_BYTES: Final = 64 << 10
_MAX_SHOWN: Final = 1024


class FileKind(StrEnum):
    """The kinds of files that commands read, as errors call them."""

    TREE = "a TopologyTree (output of `toponaut tree -o json`)"
    NODES = "a list of nodes (output of `kubectl get nodes -o json`, or an inventory)"
    SWEEP = "a sweep (output of ibnetdiscover, ibdiagnet or opensm)"
    CABLING_PLAN = "a cabling plan (CSV, NetBox, ibdm or topology.dot)"
    SILENCES = "a list of silences"
    PLANES = "rules of planes (`planes: [...]`)"
    REQUEST = "a placement request, or the manifest of a workload"
    PODS = "pods (output of `kubectl get pods -o json`)"
    NEIGHBORS = "output of lldpcli"
    WALK = "output of snmpbulkwalk"


_MAGIC: Final = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"%PDF": "a PDF",
    b"PK\x03\x04": "a zip archive",
    b"\x7fELF": "a program",
    b"SQLite format 3": "a SQLite database",
    b"\xfd7zXZ": "a file packed by xz",
    b"BZh": "a file packed by bzip2",
    b"(\xb5/\xfd": "a file packed by zstd",
}
_FORMS: Final[tuple[tuple[re.Pattern[str], FileKind | str], ...]] = tuple(
    (re.compile(pattern, re.MULTILINE | re.IGNORECASE), kind)
    for pattern, kind in (
        (r"\A\s*<(?:!doctype html|html)", "HTML"),
        (r"\A\s*<", "XML"),
        (r"^(?:Switch|Ca|Rt)\s+\d+\s+\"", FileKind.SWEEP),
        (r"^(?:vendid|devid|sysimgguid|switchguid|caguid)=", FileKind.SWEEP),
        (r"^START_(?:NODES|LINKS)\b", FileKind.SWEEP),
        (r"^(?:iso|\.?1)\.(?:0\.8802|3\.6\.1\.2\.1)\.", FileKind.WALK),
        (r"\A\s*\{\s*\"lldp(?:-chassis)?\"", FileKind.NEIGHBORS),
        (r"\A(?:#.*\n)*[^\n]*\b(?:device|side)[ _]a(?:\b|_)", FileKind.CABLING_PLAN),
        (r"\A\s*(?:strict\s+)?(?:di)?graph\b", FileKind.CABLING_PLAN),
        (r"\A#!.*\n(?:.*\n)*?#SBATCH", FileKind.REQUEST),
        (r"\A(?:#.*\n|---\n|\s)*\{?\s*[\"']?nodes[\"']?\s*:", FileKind.NODES),
        (r"\A(?:#.*\n|---\n|\s)*\{?\s*[\"']?planes[\"']?\s*:", FileKind.PLANES),
    )
)
_KIND: Final = re.compile(
    r"(?:^|[{,])\s*[\"']?kind[\"']?\s*:\s*[\"']?(\w{1,63})[^\w]", re.MULTILINE
)
_OF_MANIFESTS: Final = frozenset({FileKind.REQUEST, FileKind.PODS})
"""A file of these may have objects of any kind."""
_OBJECT: Final = "an object of kind "
_BY_OBJECT: Final = {
    "TopologyTree": FileKind.TREE,
    "Node": FileKind.NODES,
    "NodeList": FileKind.NODES,
    "Pod": FileKind.PODS,
    "PodList": FileKind.PODS,
    "PlacementRequest": FileKind.REQUEST,
}


def detect_kind(raw: bytes) -> FileKind | str:
    """Return the kind of a file, or a phrase for one that no command reads; empty if unknown."""
    head = raw[:_HEAD_BYTES]
    packed = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")
    if packed or not head.strip():
        return packed or "an empty file"
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:  # else the head ends within a character
            return "binary data"
        text = head.decode("utf-8", errors="ignore")
    known = explain_output(text)
    if known:
        return known
    for pattern, kind in _FORMS:
        if pattern.search(text):
            return kind
    found = [name for name in _KIND.findall(text) if name != "List"]
    if found and "apiVersion" in text:
        return _BY_OBJECT.get(found[0], f"{_OBJECT}{found[0]}")
    return ""


def explain_kind(file: Path, expected: FileKind) -> str:
    """Return a sentence on what a file is and should be; empty if it may be of the right kind."""
    if not file.is_file():  # a pipe can be read once only
        return ""
    try:
        with file.open("rb") as stream:
            found = detect_kind(_unpack(stream.read(_HEAD_BYTES)))
    except OSError:
        return ""
    is_manifest = found.startswith(_OBJECT) or found is FileKind.PODS
    if not found or found is expected or (expected in _OF_MANIFESTS and is_manifest):
        return ""
    return f"expected {expected}, got {found}"


def _unpack(head: bytes) -> bytes:
    """Return the beginning of a file as UTF-8; it may be packed by gzip."""
    if head.startswith(b"\x1f\x8b"):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD_BYTES)
        except zlib.error:
            return head
    return to_utf8(head)


@contextmanager
def expect_kind(file: Path, expected: FileKind) -> Iterator[None]:
    """Answer a file of another kind with one line: what it is, and what was expected.

    Raises:
        ConfigError: the code in the context raised one. The message is its own if the file may be
            of the expected kind, because then its content is wrong.
    """
    try:
        yield
    except ConfigError as error:
        problem = explain_kind(file, expected)
        if not problem:
            raise
        raise ConfigError(f"{show(str(file), _MAX_SHOWN)}: {problem}") from error
