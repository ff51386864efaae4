"""Small files that prove who one is: keys, certificates, tokens. Read anew, since they change."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from topology.model.errors import ConfigError, show

MAX_BYTES: Final = 1 << 20


def read_key_file(file: Path) -> bytes:
    """Return what is in it.

    Raises:
        ConfigError: it cannot be read, is empty, or too large to be one.
    """
    name = show(str(file), 1024)
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror}") from error
    if not raw.strip():
        raise ConfigError(f"{name}: it is empty")
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{name}: larger than {MAX_BYTES} bytes")
    return raw
