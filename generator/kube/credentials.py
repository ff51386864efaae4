"""The API server's address and the credentials for it: from a kubeconfig file or a pod's token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import yaml
from kubernetes.client.configuration import Configuration
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.incluster_config import (
    SERVICE_CERT_FILENAME,
    SERVICE_HOST_ENV_NAME,
    SERVICE_TOKEN_FILENAME,
    InClusterConfigLoader,
)

from generator.kube.kubeconfig import MAX_NAMED_BYTES, check_small_file, open_kubeconfig
from topology.model.errors import ConfigError, show

DEFAULT_KUBECONFIG: Final = "~/.kube/config"

_UNUSABLE: Final = (
    *(ConfigError, ConfigException, OSError, yaml.YAMLError),
    *(AttributeError, KeyError, TypeError, ValueError, RecursionError),
)
"""What the official client raises for a file with content of another form."""

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
