"""Input from a file or stdin: its bytes, and its documents."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from generator.objects.yaml_document import YamlDocument, parse_documents
from generator.store.local_files import read_whole_file
from topology.model.errors import ConfigError, ParseError, show

MAX_REQUEST_BYTES: Final = 4 << 20
_STDIN: Final = "-"


def split_documents(raw: bytes, source: str) -> list[YamlDocument]:
    """Return the documents in a text.

    Raises:
        ConfigError: a document cannot be read.
    """
    documents: list[YamlDocument] = []
    for document in parse_documents(raw, source=source):
        if isinstance(document, ParseError):
            raise ConfigError(str(document))
        documents.append(document)
    return documents


def read_input(file: str, limit: int) -> tuple[str, bytes]:
    """Return the name to show and the bytes of a file, or of stdin if its name is `-`.

    Raises:
        ConfigError: the file cannot be read, or is larger than the limit.
    """
    source = "stdin" if file == _STDIN else show(file, 1024)
    raw = _read_stdin(limit) if file == _STDIN else read_whole_file(Path(file), limit)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    return source, raw


def _read_stdin(limit: int) -> bytes | ParseError:
    try:
        raw = sys.stdin.buffer.read(limit + 1)
    except OSError as error:  # it is closed, or a folder
        return ParseError(f"cannot be read: {error.strerror}", source="stdin")
    return ParseError(f"larger than {limit} bytes", source="stdin") if len(raw) > limit else raw
