"""What the official client raises where a request got no answer."""

from __future__ import annotations

from typing import Final

from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import HTTPError

UNANSWERED: Final = (HTTPError, ApiException, ConfigException, OSError, ValueError)
"""Connections, keys, tokens, TLS."""
