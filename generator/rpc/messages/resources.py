"""Quantities of resources as protobuf messages, both ways.

A quantity that is not whole is sent twice: exactly, and rounded up for readers of earlier versions.
"""

from __future__ import annotations

from collections.abc import Mapping

from generator.placement.quantities import ceil_quantity
from generator.rpc.toponaut.v1 import placement_pb2 as pb


def encode_resources(request: Mapping[str, int | str]) -> pb.Resources:
    """Return the quantities of a document as a message."""
    return pb.Resources(
        quantities={name: ceil_quantity(quantity) for name, quantity in request.items()},
        exact={name: quantity for name, quantity in request.items() if isinstance(quantity, str)},
    )


def decode_resources(resources: pb.Resources) -> dict[str, int | str]:
    """Return the quantities of a message as a document has them; they are not checked."""
    return {**resources.quantities, **resources.exact}
