"""Who we are to the API server, and where it is: from a kubeconfig file or a pod's own token."""

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
from kubernetes.config.kube_config import load_kube_config

from topology.model.errors import ConfigError, show

DEFAULT_KUBECONFIG: Final = "~/.kube/config"

LoadConfiguration = Callable[[], Configuration]
"""Reads the credentials afresh; called again when the server no longer knows us."""


def find_credentials(
    *, kubeconfig: str | None, context: str | None, environ: Mapping[str, str]
) -> LoadConfiguration:
    """Return how to load the credentials that apply here, in kubectl's order.

    The file that is named, else those of `KUBECONFIG`, else the pod's own where we run in one,
    else the file in the home directory.

    Args:
        kubeconfig: a file, or several with colons between.
        context: of the file, in place of its current one.
        environ: the environment.
    """
    named = kubeconfig or environ.get("KUBECONFIG")
    if named or SERVICE_HOST_ENV_NAME not in environ:
        files = named or DEFAULT_KUBECONFIG
        return lambda: load_kubeconfig(files, context)
    return lambda: load_in_cluster(environ)


def load_kubeconfig(files: str, context: str | None = None) -> Configuration:
    """Return the credentials of a kubeconfig file, or of several with colons between.

    Where the file names a program that makes tokens, it is run, now and when they expire.

    Raises:
        ConfigError: no such file or context, or its content is no use.
    """
    configuration = _new_configuration()
    try:
        load_kube_config(files, context, configuration, persist_config=False)
    except (ConfigException, OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
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
        ConfigError: this is no pod, or one without a service account.
    """
    configuration = _new_configuration()
    try:
        InClusterConfigLoader(str(token), str(ca), environ=environ).load_and_set(configuration)
    except (ConfigException, OSError) as error:
        raise ConfigError(f"credentials of the pod: {_describe_error(error)}") from error
    return configuration


def _new_configuration() -> Configuration:
    configuration = Configuration()
    configuration.retries = False  # each loop has its own patience
    configuration.keep_alive = True  # tells a vanished server under an idle watch
    configuration.client_side_validation = False
    return configuration


def _describe_error(error: Exception) -> str:
    text = " ".join(str(error).split())
    return show(text, 400) if text else type(error).__name__
