"""The ConfigMap that keeps a part of the history of a cluster while no pod has it."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from generator.kube.applier import FIELD_MANAGER, Fence, never_fenced
from generator.kube.resources import CONFIG_MAPS
from generator.kube.transport import APPLY, KubeRequest, Transport, decode_object
from topology.model.errors import ConfigError, KubeFenced, KubeNotFound

NAME: Final = "toponaut-history"
_KEY: Final = "history.json.xz"
_TIMEOUT_S: Final = 10.0


class HistoryObject:
    """Reads and writes the object. One request each: a backup that fails is made again."""

    def __init__(
        self, transport: Transport, namespace: str, *, fence: Fence = never_fenced
    ) -> None:
        """Send no request yet.

        Args:
            transport: to the API server.
            namespace: of the generator.
            fence: the seconds for which this replica may write.
        """
        self._transport = transport
        self._namespace = namespace
        self._fence = fence

    def read(self) -> bytes | None:
        """Return the content; None without an object that has one.

        Raises:
            ConfigError: the object has other content.
            KubeError: the server refused the request, or did not answer.
        """
        request = KubeRequest("GET", self._path)
        try:
            raw = self._transport.ask(request, timeout_s=_TIMEOUT_S)
        except KubeNotFound:
            return None
        data = decode_object(str(request), raw).get("binaryData")
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
            "apiVersion": CONFIG_MAPS.api_version,
            "kind": CONFIG_MAPS.kind,
            "metadata": {"name": NAME, "namespace": self._namespace},
            "binaryData": {_KEY: base64.b64encode(content).decode()},
        }
        query = (("fieldManager", FIELD_MANAGER), ("force", "true"))
        request = KubeRequest("PATCH", self._path, query, document, APPLY)
        left_s = self._fence()
        if left_s <= 0:
            raise KubeFenced(f"{request}: not sent: another replica may lead now")
        self._transport.ask(request, timeout_s=min(_TIMEOUT_S, left_s))

    @property
    def _path(self) -> str:
        return CONFIG_MAPS.path(NAME, namespace=self._namespace)
