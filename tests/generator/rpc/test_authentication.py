"""TLS, client certificates and tokens over real connections."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from generator.cli.exit_codes import ExitCode
from generator.reconcile.round_results import QueryResult
from generator.rpc.auth.key_files import ClientIdentity
from generator.rpc.auth.tls import ServerCertificates, TlsFiles
from generator.rpc.client import METHODS, PlacementClient, PlacementServerError
from generator.rpc.published_state import PublishedState
from generator.rpc.server import PlacementServer
from generator.rpc.status_errors import CallFailure, FailureKind
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import placement_pb2_grpc
from tests.generator.rpc.clusters import request_for
from tests.generator.rpc.credentials import ANY_PORT, SOON_S, Pki, Tokens, served, trusting
from tests.generator.scenes import run
from tests.lab.certificates import Authority
from topology.model.errors import ConfigError

Metadata = tuple[tuple[str, str], ...]
FORBIDDEN = CallFailure(FailureKind.FORBIDDEN, "bob may not create placements.toponaut.io")
SILENT = CallFailure(FailureKind.REVIEW_UNAVAILABLE, "the API server cannot be asked")


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


@pytest.fixture
def tokens() -> Tokens:
    return Tokens({"alice": None, "bob": FORBIDDEN, "carol": SILENT})


def ask(address: str, proof: ClientIdentity) -> bool:
    with PlacementClient(address, SOON_S, proof) as client:
        return client.place(request_for(3)).is_feasible


def token(pki: Pki, text: str) -> ClientIdentity:
    return ClientIdentity(pki.ca, pki.write("token", text.encode()))


def code_of(channel: grpc.Channel, metadata: Metadata) -> grpc.StatusCode:
    """Return the status of a call with an empty request."""
    stub = placement_pb2_grpc.PlacementServiceStub(channel)
    with pytest.raises(grpc.RpcError) as caught:
        stub.Place(pb.PlaceRequest(), timeout=SOON_S, metadata=metadata)
    return cast("grpc.Call", caught.value).code()


def test_it_answers_a_user_with_the_right(pki: Pki, tokens: Tokens) -> None:
    with served(pki.files, tokens) as running:
        assert ask(running.address, token(pki, "alice\n"))
        assert running.results == [QueryResult.PLACED]


REFUSED_TOKENS = {
    "bob": "bob may not create",
    "mallory": "the token is not valid here",
    "carol": "cannot be asked",
    "x" * 6000: "the token is not valid here",
}


def test_it_refuses_a_token_that_is_not_granted(pki: Pki, tokens: Tokens) -> None:
    with served(pki.files, tokens) as running:
        for text, why in REFUSED_TOKENS.items():
            with pytest.raises(PlacementServerError, match=why):
                ask(running.address, token(pki, text))
        assert set(running.results) == {QueryResult.REFUSED}


WITHOUT_TOKEN: dict[str, Metadata] = {
    "no metadata": (),
    "no scheme": (("authorization", "alice"),),
    "another scheme": (("authorization", "Basic alice"),),
    "an empty token": (("authorization", "Bearer "),),
    "two tokens": (("authorization", "Bearer alice"),) * 2,
    "another key": (("x-authorization", "Bearer alice"),),
}


def test_it_reviews_no_token_of_a_call_without_one(pki: Pki, tokens: Tokens) -> None:
    with served(pki.files, tokens) as running, trusting(pki, running.address) as channel:
        for what, metadata in WITHOUT_TOKEN.items():
            assert code_of(channel, metadata) is grpc.StatusCode.UNAUTHENTICATED, what
    assert tokens.num_asked == 0


def test_it_accepts_the_scheme_in_any_case(pki: Pki, tokens: Tokens) -> None:
    with served(pki.files, tokens) as running, trusting(pki, running.address) as channel:
        for scheme in ("bearer", "BEARER", "Bearer"):
            metadata = (("authorization", f"{scheme} alice"),)
            assert code_of(channel, metadata) is grpc.StatusCode.INVALID_ARGUMENT, "it is empty"


def test_it_reports_health_without_a_token(pki: Pki, tokens: Tokens) -> None:
    with served(pki.files, tokens) as running, trusting(pki, running.address) as channel:
        running.server.set_serving()
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        found = check(health_pb2.HealthCheckRequest(), timeout=SOON_S)
        assert found.status == health_pb2.HealthCheckResponse.SERVING
    assert tokens.num_asked == 0


def test_it_requires_a_token_for_reflection(pki: Pki, tokens: Tokens) -> None:
    asked = [reflection_pb2.ServerReflectionRequest(list_services="")]
    with served(pki.files, tokens) as running, trusting(pki, running.address) as channel:
        reflect = channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )
        with pytest.raises(grpc.RpcError) as caught:
            list(reflect(iter(asked), timeout=SOON_S))
        assert cast("grpc.Call", caught.value).code() is grpc.StatusCode.UNAUTHENTICATED
        known = (("authorization", "Bearer alice"),)
        answers = list(reflect(iter(asked), timeout=SOON_S, metadata=known))
        assert answers[0].list_services_response.service


def test_it_sends_no_token_without_tls(pki: Pki) -> None:
    server = PlacementServer(ANY_PORT, PublishedState(None))
    try:
        with pytest.raises(ConfigError, match="no TLS connection"):
            ask(server.address, token(pki, "alice"))
    finally:
        server.stop(deadline_s=0)


def test_it_refuses_a_server_of_another_authority(pki: Pki, tokens: Tokens) -> None:
    other = pki.write("other.crt", Authority("other").pem)
    with (
        served(pki.files, tokens) as running,
        pytest.raises(ConfigError, match="no TLS connection"),
    ):
        ask(running.address, ClientIdentity(other, pki.write("token", b"alice")))


def test_it_accepts_a_certificate_for_a_configured_name(pki: Pki, tokens: Tokens) -> None:
    with served(pki.files, tokens) as running:
        proof = token(pki, "alice")._replace(server_name="elsewhere.example")
        with pytest.raises(ConfigError, match="no TLS connection"):
            ask(running.address, proof)
        assert ask(running.address, proof._replace(server_name="localhost"))


def test_it_requires_a_certificate_of_its_authority(pki: Pki) -> None:
    files = pki.files._replace(client_ca=pki.ca)
    with served(files) as running:
        cert, key = pki.client()
        assert ask(running.address, ClientIdentity(pki.ca, cert=cert, key=key))
        with pytest.raises(ConfigError, match="no TLS connection"):
            ask(running.address, ClientIdentity(pki.ca))
        cert, key = (
            pki.write(f"stranger{at}", one)
            for at, one in enumerate(Authority("other").issue("stranger"))
        )
        with pytest.raises(ConfigError, match="no TLS connection"):
            ask(running.address, ClientIdentity(pki.ca, cert=cert, key=key))


def test_it_requires_certificate_and_token_if_both_are_configured(pki: Pki, tokens: Tokens) -> None:
    with served(pki.files._replace(client_ca=pki.ca), tokens) as running:
        cert, key = pki.client()
        proof = token(pki, "alice")._replace(cert=cert, key=key)
        assert ask(running.address, proof)
        with pytest.raises(PlacementServerError, match="one bearer token"):
            ask(running.address, proof._replace(token=None))
        with pytest.raises(ConfigError):
            ask(running.address, token(pki, "alice"))


def serial(pki: Pki, address: str) -> int:
    """Return the serial number of the server's certificate on a new connection."""
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context(cafile=str(pki.ca))
    with (
        socket.create_connection((host, int(port)), timeout=SOON_S) as plain,
        context.wrap_socket(plain, server_hostname=host) as wrapped,
    ):
        found = wrapped.getpeercert()
        assert found is not None
        return int(str(found["serialNumber"]), 16)


def test_it_uses_a_renewed_certificate_for_the_next_connection(pki: Pki, tokens: Tokens) -> None:
    with served(pki.files, tokens) as running:
        first = serial(pki, running.address)
        assert serial(pki, running.address) == first
        with PlacementClient(running.address, SOON_S, token(pki, "alice")) as client:
            assert client.place(request_for(1)).is_feasible
            pki.renew()
            assert client.place(request_for(1)).is_feasible, "an open connection stays"
        assert serial(pki, running.address) != first


def test_it_keeps_the_last_good_certificate_while_the_files_are_unusable(
    pki: Pki, tokens: Tokens
) -> None:
    with served(pki.files, tokens) as running:
        first = serial(pki, running.address)
        cert, _ = pki.authority.issue("server")
        _, key = pki.authority.issue("server")
        for pair in ((cert, key), (cert, b"nonsense"), (b"nonsense", key), (b"", b"")):
            pki.put(*pair)
            assert serial(pki, running.address) == first
        pki.files.cert.unlink()
        assert serial(pki, running.address) == first
        pki.renew()
        assert serial(pki, running.address) != first


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("tls.crt", b"nonsense", "tls.crt: no certificate in PEM"),
        ("tls.key", b"nonsense", "tls.key: no private key in PEM"),
        ("tls.key", b"", "tls.key: it is empty"),
        ("tls.key", b"x" * ((1 << 20) + 1), "tls.key: larger than"),
        ("tls.crt", Authority("a").issue("b")[0], "the key does not match the certificate"),
        ("client.crt", b"nonsense", "client.crt: no certificate in PEM"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_it_does_not_start_with(pki: Pki, name: str, content: bytes, why: str) -> None:
    client_ca = pki.write("client.crt", pki.authority.pem)
    pki.write(name, content)
    with pytest.raises(ConfigError, match=why):
        ServerCertificates(pki.files._replace(client_ca=client_ca))


def test_it_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="absent: No such file"):
        ServerCertificates(TlsFiles(tmp_path / "absent", tmp_path / "absent"))


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "it is empty"), ("a\x00b", "no bearer token"), ("tok\u00e9n", "no bearer token")],
    ids=["empty", "not printable", "not ASCII"],
)
def test_it_sends_no_malformed_token(pki: Pki, text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        ask("127.0.0.1:1", token(pki, text))


def test_it_requires_a_client_certificate_and_its_key_together(pki: Pki) -> None:
    cert, _ = pki.client()
    with pytest.raises(ConfigError, match="give both"):
        PlacementClient("127.0.0.1:1", SOON_S, ClientIdentity(pki.ca, cert=cert))


def test_it_refuses_calls_if_the_check_fails(pki: Pki) -> None:
    class Broken:
        def authenticate(self, token: str, *, peer: str, timeout_s: float) -> str | CallFailure:
            raise RuntimeError(f"{token} {peer} {timeout_s}")

    with served(pki.files, Broken()) as running:
        with pytest.raises(PlacementServerError, match="internal error") as caught:
            ask(running.address, token(pki, "alice"))
        assert "alice" not in str(caught.value)
        assert running.results == [QueryResult.REFUSED]


def test_it_authenticates_every_method(pki: Pki, tokens: Tokens) -> None:
    with served(pki.files, tokens) as running, trusting(pki, running.address) as channel:
        for method in METHODS.values():
            name = f"/{method.containing_service.full_name}/{method.name}"
            call: Any = channel.stream_stream(name)
            codes = []
            for bearer in ("nobody", "alice"):
                metadata = (("authorization", f"Bearer {bearer}"),)
                answers = call(iter([b""]), timeout=SOON_S, metadata=metadata)
                try:
                    next(answers)
                    codes.append(grpc.StatusCode.OK)
                except grpc.RpcError:
                    codes.append(answers.code())
                answers.cancel()
            assert codes[0] is grpc.StatusCode.UNAUTHENTICATED, name
            assert codes[1] is not grpc.StatusCode.UNAUTHENTICATED, name


def test_it_calls_by_command(pki: Pki, tokens: Tokens) -> None:
    request = pki.write(
        "request.yaml",
        b"apiVersion: toponaut.io/v1alpha1\nkind: PlacementRequest\n"
        b"spec: {groups: [{name: w, count: 3}]}\n",
    )
    cert, key = pki.client()
    with served(pki.files._replace(client_ca=pki.ca), tokens) as running:
        words = ["place", "-f", request, "--server", running.address, "--ca-file", pki.ca]
        words += ["--client-cert", cert, "--client-key", key]
        token_file = pki.write("token", b"alice")
        ran = run(*words, "--token-file", token_file)
        assert (ran.code, ran.err) == (ExitCode.OK, "")
        assert ran.out.startswith("feasible: 3 pods")
        token_file.write_bytes(b"bob")
        ran = run(*words, "--token-file", token_file)
        assert ran.code == ExitCode.NOTHING
        assert "bob may not create" in ran.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--ca-file", "tls.crt"], "need --server"),
        (["--server", "127.0.0.1:1", "--client-cert", "tls.crt"], "--client-key together"),
    ],
    ids=["a proof for nobody", "half a proof"],
)
def test_it_refuses_by_command(pki: Pki, words: list[str], why: str) -> None:
    given = [str(pki.folder / word) if word.endswith(".crt") else word for word in words]
    ran = run("place", "-f", "-", *given)
    assert ran.code == ExitCode.USAGE
    assert why in ran.err
