"""A small client of the placement service: requests and answers as values, errors as ours."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

import grpc

from generator.placement.answer import Placement
from generator.placement.request import PlacementRequest, UnsupportedRequest
from generator.rpc.address import loopback_address, open_address
from generator.rpc.convert import placement_of, request_message
from generator.rpc.failures import Failure, FailureKind, failure_of
from generator.rpc.faults import quiet_faults
from generator.rpc.key_files import read_key_file
from generator.rpc.proof import PLAIN, Proof
from generator.rpc.toponaut.v1 import placement_pb2_grpc
from topology.errors import ConfigError, PlacementRequestError, TopologyError, show

MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.enable_http_proxy", 0),  # a proxy cannot reach this machine's loopback
)

_NO_GRPC: Final = "Failed parsing HTTP/2"
"""In the details of a call to what speaks something else, such as HTTP/1.1 or SSH."""


class PlacementServerError(TopologyError):
    """A server was reached and gave no answer."""


class PlacementClient:
    """One long-lived channel to one server; safe to share between threads."""

    def __init__(self, address: str, timeout_s: float, proof: Proof = PLAIN) -> None:
        """Keep the address; nothing is connected before the first call.

        Args:
            address: `HOST:PORT`; loopback where no proof is given: then there is no TLS.
            timeout_s: deadline of each call, which is also the time that the search may take.
            proof: for servers that ask for one.

        Raises:
            ConfigError: the address is none, or not loopback without a proof, or a file cannot
                be used.
        """
        quiet_faults()
        self._timeout_s = timeout_s
        self._token = proof.token
        self._is_plain = is_plain = not any(proof)
        self.address = loopback_address(address) if is_plain else open_address(address)
        self._channel = (
            grpc.insecure_channel(self.address, options=_OPTIONS)
            if is_plain
            else _secure_channel(self.address, proof)
        )
        self._stub = placement_pb2_grpc.PlacementServiceStub(self._channel)

    def __enter__(self) -> Self:
        """Return the client, which `with` closes."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the channel."""
        self._channel.close()

    def place(self, request: PlacementRequest) -> Placement:
        """Ask for a placement.

        Raises:
            PlacementRequestError: the server refuses the request; UnsupportedRequest where it
                makes sense but cannot be granted yet.
            ConfigError: nobody answers at the address, or it is not this service, or the file of
                the token cannot be read.
            PlacementServerError: the server gave no answer in time, knows no tree yet, or failed.
        """
        message = request_message(request)
        try:
            response = self._stub.Place(message, timeout=self._timeout_s, metadata=self._metadata())
        except grpc.RpcError as error:
            raise self._translated(error) from error
        try:
            return placement_of(response.placement)
        except ValueError as error:
            problem = f"the server at {self.address} is of another version: {error}"
            raise PlacementServerError(problem) from error

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        if self._token is None:
            return ()
        token = read_key_file(self._token).decode("ascii", "replace").strip()
        if not token.isascii() or not token.isprintable() or not token:
            raise ConfigError(f"{show(str(self._token), 1024)}: no bearer token in it")
        return (("authorization", f"Bearer {token}"),)

    def _translated(self, error: object) -> TopologyError:
        if not isinstance(error, grpc.Call):
            return PlacementServerError(f"the call to {self.address} failed: {show(str(error))}")
        failure = failure_of(error)
        return self._from_failure(failure) if failure else self._from_code(error)

    def _from_failure(self, failure: Failure) -> TopologyError:
        field, problem = show(failure.field, 200), show(failure.problem, 500)
        match failure.kind:
            case FailureKind.INVALID_REQUEST:
                return PlacementRequestError(field or "spec", problem)
            case FailureKind.UNSUPPORTED_REQUEST:
                return UnsupportedRequest(field or "spec", problem)
            case _:
                return PlacementServerError(f"the server at {self.address}: {problem}")

    def _from_code(self, call: grpc.Call) -> TopologyError:
        match call.code():
            case grpc.StatusCode.UNAVAILABLE if _NO_GRPC in (call.details() or ""):
                return ConfigError(f"what answers at {self.address} is no gRPC server")
            case grpc.StatusCode.UNAVAILABLE if not self._is_plain:
                why = show(call.details() or "", 300)
                return ConfigError(f"no connection by TLS to {self.address}: {why}")
            case grpc.StatusCode.UNAVAILABLE:
                return ConfigError(
                    f"no server answers at {self.address}: start one with toponaut serve --store "
                    f"DIR --insecure-loopback --listen {self.address}; "
                    "one with TLS wants --ca-file"
                )
            case grpc.StatusCode.UNIMPLEMENTED:
                return ConfigError(f"what answers at {self.address} is no placement server")
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                late = f"gave no answer within {self._timeout_s:g} s"
                return PlacementServerError(f"the server at {self.address} {late}")
            case code:
                why = f"{code.name}: {show(call.details() or '', 500)}"
                return PlacementServerError(f"the server at {self.address} failed: {why}")


def _secure_channel(address: str, proof: Proof) -> grpc.Channel:
    if (proof.cert is None) != (proof.key is None):
        raise ConfigError("a client certificate and its key go together")
    credentials = grpc.ssl_channel_credentials(
        root_certificates=read_key_file(proof.ca) if proof.ca else None,
        private_key=read_key_file(proof.key) if proof.key else None,
        certificate_chain=read_key_file(proof.cert) if proof.cert else None,
    )
    named = (("grpc.ssl_target_name_override", proof.server_name),) if proof.server_name else ()
    return grpc.secure_channel(address, credentials, options=(*_OPTIONS, *named))
