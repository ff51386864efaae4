"""What the placement service asks for and does not do itself."""

from __future__ import annotations

from typing import Protocol

import grpc

from generator.rpc.status_errors import CallFailure
from generator.rpc.toponaut.v1 import placement_pb2 as pb


class ReservationCalls(Protocol):
    """Keeps nodes for gangs; callable from several threads at once."""

    def reserve(
        self, request: pb.ReserveRequest, context: grpc.ServicerContext
    ) -> pb.ReserveResponse | CallFailure:
        """Place a gang and keep its nodes, or say why the call fails; infeasible is an answer."""
        ...

    def confirm(
        self, request: pb.ConfirmRequest, context: grpc.ServicerContext
    ) -> pb.ConfirmResponse | CallFailure:
        """Let a reservation last."""
        ...

    def release(
        self, request: pb.ReleaseRequest, context: grpc.ServicerContext
    ) -> pb.ReleaseResponse | CallFailure:
        """Give the nodes of a reservation back."""
        ...
