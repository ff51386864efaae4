"""`RequestCache`: parsed requests, so that the next gang of the same shape is not parsed again.

The gangs of a cluster have few shapes and many names; parsing a gang takes as long as placing it.
"""

from __future__ import annotations

from typing import Final

from generator.placement.request import PlacementRequest
from generator.rpc.messages.requests import MAX_NAME_CHARS, decode_request
from generator.rpc.toponaut.v1 import placement_pb2 as pb

MAX_REQUESTS: Final = 512
"""Requests in the cache; a full cache is emptied, which needs no lock."""
MAX_CACHED_BYTES: Final = 4096
"""Largest message that is cached."""


class RequestCache:
    """Parses messages; thread-safe."""

    def __init__(self) -> None:
        """Start empty."""
        self._parsed: dict[bytes, PlacementRequest] = {}

    def parse_request(self, spec: pb.PlacementSpec) -> PlacementRequest:
        """Return the request of a message; removes the gang's name from the message.

        Raises:
            PlacementRequestError: the request is malformed; paths are relative to the message.
        """
        gang = spec.gang
        if len(gang) > MAX_NAME_CHARS:
            return decode_request(spec)
        spec.ClearField("gang")
        shape = spec.SerializeToString()
        request = self._parsed.get(shape)
        if request is None:
            request = decode_request(spec)
            if len(shape) <= MAX_CACHED_BYTES:
                self._store(shape, request)
        return request.with_gang(gang) if gang else request

    def _store(self, shape: bytes, request: PlacementRequest) -> None:
        if len(self._parsed) >= MAX_REQUESTS:
            self._parsed.clear()
        self._parsed[shape] = request
