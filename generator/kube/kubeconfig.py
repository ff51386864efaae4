"""Reads kubeconfig files with the official client, within limits that it does not have itself."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any, Final

from kubernetes.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger

from runtime.small_files import read_small_file
from topology.model.errors import ConfigError, show

MAX_KUBECONFIG_BYTES: Final = 4 << 20
MAX_NAMED_BYTES: Final = 1 << 20
"""Of a token, a key, a certificate or authorities that a kubeconfig names."""
_NAMED_FILES: Final = (
    ("cluster", "certificate-authority", "certificate-authority-data"),
    ("user", "client-certificate", "client-certificate-data"),
    ("user", "client-key", "client-key-data"),
    ("user", "tokenFile", "token"),
)
"""In which part of a kubeconfig a file is named, by which field, and the field that replaces it."""


def open_kubeconfig(files: str, context: str | None) -> KubeConfigLoader:
    """Return the official loader of one file, or of several files separated by colons.

    A pipe, as a shell makes of a command, is read if it is the only file.

    Raises:
        ConfigError: a kubeconfig, or a file that it names, is too large or is not a regular file.
        Exception: those of the official client, if the content is not usable.
    """
    merged = KubeConfigMerger(_bounded(files)).config
    if merged is None:
        raise ConfigError("no such file")
    config = merged if isinstance(merged, ConfigNode) else ConfigNode(files, merged)
    loader = KubeConfigLoader(config, active_context=context, config_base_path=None)
    for file in _named_files(config, loader.current_context["context"]):
        check_small_file(file, MAX_NAMED_BYTES)
    return loader


def check_small_file(file: Path, limit: int) -> None:
    """Check a file that the official client will read to its end; a missing one is left to it.

    Raises:
        ConfigError: the file is too large, or no regular file.
    """
    if not file.exists():
        return
    status = file.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"{show(str(file), 1024)}: not a regular file")
    if status.st_size > limit:
        raise ConfigError(f"{show(str(file), 1024)}: larger than {limit} bytes")


def _bounded(files: str) -> str | StringIO:
    """Return what the official client may read: the names of the files, or the text of a pipe."""
    paths = [Path(path).expanduser() for path in files.split(os.pathsep) if path]
    if len(paths) == 1 and paths[0].is_fifo():
        return StringIO(read_small_file(paths[0], MAX_KUBECONFIG_BYTES).decode())
    for path in paths:
        check_small_file(path, MAX_KUBECONFIG_BYTES)
    return files


def _named_files(config: ConfigNode, context: dict[str, Any]) -> Iterator[Path]:
    """Yield the files that the cluster and the user of a context name."""
    for part, field, inline in _NAMED_FILES:
        rows = config[f"{part}s"] if part in context and f"{part}s" in config else None
        row = rows.get_with_name(context[part], safe=True) if rows is not None else None
        if row is None:
            continue
        named = row.value.get(part) or {}
        if field in named and inline not in named:
            base = Path(row.path).parent if row.path else Path()
            yield base / named[field]
