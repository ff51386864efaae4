"""The ConfigMap that keeps a part of the history of a cluster while no pod has it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from generator.kube.resources import CONFIG_MAPS
from generator.store.cluster_store import ClusterStore
from generator.store.kinds import Kind
from topology.model.errors import ConfigError

NAME: Final = "toponaut-history"
_KEY: Final = "history.json.xz"


class HistoryObject:
    """Reads and writes the object."""

    def __init__(self, objects: ClusterStore, namespace: str) -> None:
        """Send no request yet.

        Args:
            objects: the objects of the cluster.
            namespace: the namespace of the generator.
        """
        self._objects = objects
        self._namespace = namespace
        self._kind: Kind[Mapping[str, Any]] = Kind(CONFIG_MAPS, dict, is_private=True)

    def read(self) -> bytes | None:
        """Return the content; None without an object that has one.

        Raises:
            ConfigError: the object has other content.
            KubeError: the server refused the request, or did not answer.
        """
        found = self._objects.get(self._kind, f"{self._namespace}/{NAME}")
        data = None if found is None else found.value.get("binaryData")
        text = data.get(_KEY) if isinstance(data, dict) else None
        if text is None:
            return None
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise ConfigError(f"ConfigMap {NAME}: {_KEY} is not base64") from error

    def write(self, content: bytes) -> None:
        """Create the object, or replace its content.

        Raises:
            KubeFenced: another replica may lead now.
            KubeError: the server refused the request, or did not answer.
        """
        document = {
            "metadata": {"name": NAME, "namespace": self._namespace},
            "binaryData": {_KEY: base64.b64encode(content).decode()},
        }
        self._objects.apply(self._kind, document)
