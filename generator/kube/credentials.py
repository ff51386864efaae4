"""Loads the credentials of a cluster: of a kubeconfig file, or the token of a pod.

The official client reads the files, within limits that it does not have itself.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.client.configuration import Configuration
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.incluster_config import (
    SERVICE_CERT_FILENAME,
    SERVICE_HOST_ENV_NAME,
    SERVICE_TOKEN_FILENAME,
    InClusterConfigLoader,
)
from kubernetes.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger

from runtime.small_files import read_small_file
from topology.model.errors import ConfigError, show

MAX_KUBECONFIG_BYTES: Final = 4 << 20
MAX_NAMED_BYTES: Final = 1 << 20
"""Size of a token, a key, a certificate or authorities that a kubeconfig names."""
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
        raise ConfigError(f"{file}: not a regular file")
    if status.st_size > limit:
        raise ConfigError(f"{file}: larger than {limit} bytes")


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


DEFAULT_KUBECONFIG: Final = "~/.kube/config"

_UNUSABLE: Final = (
    *(ConfigError, ConfigException, OSError, yaml.YAMLError),
    *(AttributeError, KeyError, TypeError, ValueError, RecursionError),
)
"""The errors that the official client raises for a file with content of another form."""

LoadConfiguration = Callable[[], Configuration]
"""Loads the credentials; called again after a 401."""


def find_credentials(
    *, kubeconfig: str | None, context: str | None, environ: Mapping[str, str]
) -> LoadConfiguration:
    """Return the function that loads the credentials, in kubectl's order.

    The order is: the given file, the files in `KUBECONFIG`, the pod's own token if we run in a pod,
    the file in the home directory.

    Args:
        kubeconfig: a file, or several files separated by colons.
        context: the context of the file to use; None uses its current context.
        environ: the environment.
    """
    named = kubeconfig or environ.get("KUBECONFIG")
    if named or SERVICE_HOST_ENV_NAME not in environ:
        files = named or DEFAULT_KUBECONFIG
        return lambda: load_kubeconfig(files, context)
    return lambda: load_in_cluster(environ)


def may_have_credentials(environ: Mapping[str, str]) -> bool:
    """Return whether anything names a cluster: a variable, the pod, or the file of the user."""
    is_named = bool(environ.get("KUBECONFIG")) or SERVICE_HOST_ENV_NAME in environ
    return is_named or Path(DEFAULT_KUBECONFIG).expanduser().exists()


def load_kubeconfig(files: str, context: str | None = None) -> Configuration:
    """Return the credentials of a kubeconfig file, or of several files separated by colons.

    If the file names a program that makes tokens, the program runs now and when a token expires.

    Raises:
        ConfigError: the file or the context does not exist, or the content is not usable.
    """
    configuration = _new_configuration()
    try:
        open_kubeconfig(files, context).load_and_set(configuration)
    except _UNUSABLE as error:
        raise ConfigError(f"kubeconfig {show(files, 1024)}: {_describe_error(error)}") from error
    return configuration


def load_in_cluster(
    environ: Mapping[str, str],
    *,
    token: Path = Path(SERVICE_TOKEN_FILENAME),
    ca: Path = Path(SERVICE_CERT_FILENAME),
) -> Configuration:
    """Return the credentials of the pod that we run in; the token is read again every minute.

    Raises:
        ConfigError: we do not run in a pod, or the pod has no service account.
    """
    configuration = _new_configuration()
    try:
        for file in (token, ca):
            check_small_file(file, MAX_NAMED_BYTES)
        InClusterConfigLoader(str(token), str(ca), environ=environ).load_and_set(configuration)
    except (ConfigError, ConfigException, OSError) as error:
        raise ConfigError(f"credentials of the pod: {_describe_error(error)}") from error
    return configuration


def _new_configuration() -> Configuration:
    configuration = Configuration()
    configuration.retries = False  # each loop retries by its own policy
    configuration.keep_alive = True  # detects a vanished server during an idle watch
    configuration.client_side_validation = False
    return configuration


def _describe_error(error: Exception) -> str:
    text = " ".join(str(error).split())
    return show(text, 400) if text else type(error).__name__
