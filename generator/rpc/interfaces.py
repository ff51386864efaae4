"""Interfaces that the placement service needs from outside."""

from __future__ import annotations

from typing import Protocol

import grpc

from generator.rpc.status_errors import CallFailure
from generator.rpc.toponaut.v1 import placement_pb2 as pb


class ReservationCalls(Protocol):
    """Reserves nodes for gangs; thread-safe."""

    def reserve(
        self, request: pb.ReserveRequest, context: grpc.ServicerContext
    ) -> pb.ReserveResponse | CallFailure:
        """Place a gang and reserve its nodes, or return a failure; infeasible is an answer."""
        ...

    def confirm(
        self, request: pb.ConfirmRequest, context: grpc.ServicerContext
    ) -> pb.ConfirmResponse | CallFailure:
        """Confirm a reservation, so that it lasts until it is released."""
        ...

    def release(
        self, request: pb.ReleaseRequest, context: grpc.ServicerContext
    ) -> pb.ReleaseResponse | CallFailure:
        """Release the nodes of a reservation."""
        ...
