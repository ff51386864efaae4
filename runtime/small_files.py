"""Reads small files, such as keys, tokens and settings: never more than a limit."""

from __future__ import annotations

from pathlib import Path

from topology.model.errors import ConfigError


def read_small_file(file: Path, limit: int) -> bytes:
    """Return the content of a file.

    Raises:
        ConfigError: it cannot be read, or is larger than the limit.
    """
    try:
        with file.open("rb") as stream:
            raw = stream.read(limit + 1)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from error
    if len(raw) > limit:
        raise ConfigError(f"{file}: larger than {limit} bytes")
    return raw
