"""Requests that came lately, so that the next gang of the same shape is not parsed again.

A cluster's gangs have few shapes and many names; parsing one takes as long as placing it.
"""

from __future__ import annotations

from typing import Final

from generator.placement.request import PlacementRequest
from generator.rpc.messages.requests import MOST_CHARS, request_of
from generator.rpc.toponaut.v1 import placement_pb2 as pb

MOST_SHAPES: Final = 512
"""That are remembered; then it begins anew, which needs no lock."""
MOST_BYTES: Final = 4096
"""Of a message that is remembered."""


class Parsing:
    """Parses messages; any thread may ask."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._known: dict[bytes, PlacementRequest] = {}

    def request_of(self, spec: pb.PlacementSpec) -> PlacementRequest:
        """Return the request of a message, whose gang's name is taken out of it.

        Raises:
            PlacementRequestError: it is malformed; paths are relative to the message.
        """
        gang = spec.gang
        if len(gang) > MOST_CHARS:
            return request_of(spec)
        spec.ClearField("gang")
        shape = spec.SerializeToString()
        known = self._known.get(shape)
        if known is None:
            known = request_of(spec)
            if len(shape) <= MOST_BYTES:
                self._keep(shape, known)
        return known.named(gang) if gang else known

    def _keep(self, shape: bytes, request: PlacementRequest) -> None:
        if len(self._known) >= MOST_SHAPES:
            self._known.clear()
        self._known[shape] = request
