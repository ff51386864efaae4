"""Requests that came lately, so that the next gang of the same shape is not parsed again.

A cluster's gangs have few shapes and many names; parsing one takes as long as placing it.
"""

from __future__ import annotations

from typing import Final

from generator.placement.request import PlacementRequest
from generator.rpc.messages.requests import MAX_NAME_CHARS, decode_request
from generator.rpc.toponaut.v1 import placement_pb2 as pb

MAX_REQUESTS: Final = 512
"""That are remembered; then it begins anew, which needs no lock."""
MAX_CACHED_BYTES: Final = 4096
"""Of a message that is remembered."""


class RequestCache:
    """Parses messages; any thread may ask."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._parsed: dict[bytes, PlacementRequest] = {}

    def parse_request(self, spec: pb.PlacementSpec) -> PlacementRequest:
        """Return the request of a message, whose gang's name is taken out of it.

        Raises:
            PlacementRequestError: it is malformed; paths are relative to the message.
        """
        gang = spec.gang
        if len(gang) > MAX_NAME_CHARS:
            return decode_request(spec)
        spec.ClearField("gang")
        shape = spec.SerializeToString()
        known = self._parsed.get(shape)
        if known is None:
            known = decode_request(spec)
            if len(shape) <= MAX_CACHED_BYTES:
                self._store(shape, known)
        return known.with_gang(gang) if gang else known

    def _store(self, shape: bytes, request: PlacementRequest) -> None:
        if len(self._parsed) >= MAX_REQUESTS:
            self._parsed.clear()
        self._parsed[shape] = request
