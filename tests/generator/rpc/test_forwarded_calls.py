"""Calls that only the leader answers, sent to a follower: real servers, certificates and tokens."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import cast

import grpc
import pytest
from google.rpc import (  # type: ignore[import-untyped]  # stubs, but no py.typed
    status_pb2,
)
from grpc_status import rpc_status

from generator.reservations.records import Refusal, RefusalKind
from generator.rpc.auth.tls import OVERLAP_S, TlsFiles
from generator.rpc.client import is_transient
from generator.rpc.forwarded_calls import FORWARDED_FOR, LEADER_VERSION
from generator.rpc.limits import MAX_CALLER_FORWARDED
from generator.rpc.status_errors import CallFailure, FailureKind, decode_failure
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from tests.generator.reservations.worlds import id_of
from tests.generator.rpc.credentials import SOON_S, Tokens
from tests.generator.rpc.replicas import (
    SERVICE_NAMES,
    Caller,
    Listener,
    Mount,
    Replica,
    replicated,
    reserve_request,
)
from tests.lab.certificates import Authority
from tests.lab.wait import wait_until

AUTHORITY = Authority("ca")
PAIR = AUTHORITY.issue("toponaut-generator", *SERVICE_NAMES)
ALICE = "alice"
TOKENS = Tokens({"alice": None, "bob": None})


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    return mount(tmp_path / "tls", PAIR).files


@pytest.fixture
def replicas(files: TlsFiles) -> Iterator[tuple[Replica, Replica]]:
    with replicated(files, TOKENS) as found:
        yield found


def mount(folder: Path, pair: tuple[bytes, bytes]) -> Mount:
    made = Mount(folder)
    made.deliver(pair)
    return made


@contextmanager
def calling(
    replica: Replica, token: str = ALICE, client: tuple[bytes, bytes] | None = None
) -> Iterator[Caller]:
    caller = Caller(replica.address, AUTHORITY, token, client)
    try:
        yield caller
    finally:
        caller.channel.close()


@contextmanager
def listening(pair: tuple[bytes, bytes]) -> Iterator[Listener]:
    listener = Listener(pair)
    try:
        yield listener
    finally:
        listener.stop()


def failed(call: Callable[[], object]) -> CallFailure:
    failure = decode_failure(caught(call))
    assert failure is not None
    return failure


def caught(call: Callable[[], object]) -> grpc.Call:
    with pytest.raises(grpc.RpcError) as error:
        call()
    return cast("grpc.Call", error.value)


def status_of(call: grpc.Call) -> status_pb2.Status:
    return rpc_status.from_call(call)


def test_a_follower_answers_as_the_leader_that_its_certificate_does_not_name(
    replicas: tuple[Replica, Replica],
) -> None:
    leader, follower = replicas
    with calling(follower) as caller, calling(leader) as direct:
        made = caller.reserve()
        assert made.reservation.phase == pb.RESERVATION_PHASE_RESERVED
        assert direct.reserve() == made, "a repeat at the leader is the same reservation"
        assert caller.confirm().phase == pb.RESERVATION_PHASE_CONFIRMED
        assert caller.release().phase == pb.RESERVATION_PHASE_RELEASED
    (row,) = leader.store.rows.values()
    assert row.holder == "alice"
    assert leader.store.writes
    assert follower.store.writes == []


@pytest.mark.parametrize(
    ("token", "call"),
    [
        pytest.param("bob", Caller.release, id="of another holder"),
        pytest.param("alice", lambda caller: caller.confirm(7), id="about an unknown reservation"),
        pytest.param(
            "alice",
            lambda caller: caller.stub.Reserve(
                reserve_request(1, count=3), timeout=SOON_S, metadata=caller.metadata
            ),
            id="with an id that is used",
        ),
        pytest.param(
            "alice",
            lambda caller: caller.stub.Reserve(
                pb.ReserveRequest(request_id="x"), timeout=SOON_S, metadata=caller.metadata
            ),
            id="that is malformed",
        ),
        pytest.param("mallory", Caller.reserve, id="with a token that is not valid"),
    ],
)
def test_a_refusal_has_the_same_status_and_details_at_both_for_a_call(
    replicas: tuple[Replica, Replica], token: str, call: Callable[[Caller], object]
) -> None:
    leader, follower = replicas
    with calling(leader) as caller:
        caller.reserve()
    statuses = []
    for replica in (leader, follower):
        with calling(replica, token) as caller:
            statuses.append(status_of(caught(partial(call, caller))))
    assert statuses[0] == statuses[1]
    assert statuses[0].details


def test_only_the_leader_sees_the_token_and_nothing_else_of_the_metadata(
    replicas: tuple[Replica, Replica],
) -> None:
    _, follower = replicas
    with listening(PAIR) as leader, calling(follower) as caller:
        follower.follow(leader.address)
        caller.metadata += (("x-secret", "1"), ("grpc-trace-bin", b"1"))
        with pytest.raises(grpc.RpcError):
            caller.reserve(timeout_s=1.0)
    (seen,) = leader.calls
    assert {key: seen.metadata[key] for key in seen.metadata if key != "user-agent"} == {
        "authorization": "Bearer alice",
        FORWARDED_FOR: b"",
    }


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(
            AUTHORITY.issue("toponaut-generator", *SERVICE_NAMES),
            id="another certificate of the same authority and names",
        ),
        pytest.param(
            Authority("ca").issue("toponaut-generator", *SERVICE_NAMES),
            id="a certificate of another authority",
        ),
    ],
)
def test_it_sends_no_token_to_a_server_with(
    replicas: tuple[Replica, Replica], pair: tuple[bytes, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    _, follower = replicas
    with (
        listening(pair) as impostor,
        calling(follower) as caller,
        caplog.at_level(logging.WARNING, "generator.rpc.forwarded_calls"),
    ):
        follower.follow(impostor.address)
        for _ in range(2):
            assert failed(caller.reserve).kind is FailureKind.LEADER_UNREACHABLE
    assert impostor.calls == []
    (row,) = caplog.records
    assert row.getMessage() == "unreachable leader appeared"
    assert "alice" not in str(vars(row))


@pytest.mark.parametrize("is_own", [True, False], ids=["itself", "another follower"])
def test_a_call_is_forwarded_once_if_a_follower_takes_for_the_leader(
    replicas: tuple[Replica, Replica], *, is_own: bool
) -> None:
    other, follower = replicas
    follower.follow(follower.address if is_own else other.address)
    other.follow(follower.address)
    with calling(follower) as caller:
        begun = time.monotonic()
        call = caught(caller.reserve)
        assert time.monotonic() - begun < SOON_S / 2
        failure = decode_failure(call)
        assert failure is not None
        assert failure.kind is FailureKind.NO_LEADER
        assert is_transient(call)


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("unix:9", id="a scheme of gRPC"),
        pytest.param("127.0.0.1:1", id="a closed port"),
    ],
)
def test_a_call_may_be_repeated_if_nothing_answers_at(
    replicas: tuple[Replica, Replica], address: str
) -> None:
    leader, follower = replicas
    with calling(follower) as caller:
        follower.follow(address)
        call = caught(lambda: caller.reserve(timeout_s=10.0))
        failure = decode_failure(call)
        assert failure is not None, call.code()
        assert failure.kind is FailureKind.LEADER_UNREACHABLE
        assert is_transient(call)
        follower.follow(leader.address)
        assert caller.reserve().reservation.id == id_of(1)


def test_the_callers_deadline_holds_at_the_leader(replicas: tuple[Replica, Replica]) -> None:
    _, follower = replicas
    with listening(PAIR) as leader, calling(follower) as caller:
        follower.follow(leader.address)
        call = caught(lambda: caller.reserve(timeout_s=1.0))
        # The end of the forwarded call may reach the caller just before its own deadline.
        assert call.code() in {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE}
        (seen,) = leader.calls
        assert 0 < seen.left_s <= 1.0
        assert seen.has_ended.wait(SOON_S)


def test_the_call_ends_at_the_leader_when_the_caller_cancels_it(
    replicas: tuple[Replica, Replica],
) -> None:
    _, follower = replicas
    with listening(PAIR) as leader, calling(follower) as caller:
        follower.follow(leader.address)
        call = caller.stub.Reserve.future(
            reserve_request(), timeout=SOON_S, metadata=caller.metadata
        )
        assert leader.has_call.wait(SOON_S)
        call.cancel()
        assert leader.calls[0].has_ended.wait(SOON_S / 2)


def test_waiting_calls_are_bounded_and_leave_threads_for_placement(
    replicas: tuple[Replica, Replica],
) -> None:
    leader, follower = replicas
    leader.store.is_open.clear()
    with calling(follower) as caller:
        asked = pb.ReleaseRequest(id=id_of(1))
        calls = [
            caller.stub.Release.future(asked, timeout=SOON_S, metadata=caller.metadata)
            for _ in range(MAX_CALLER_FORWARDED + 4)
        ]
        wait_until(
            lambda: None if sum(call.done() for call in calls) == 4 else "not full",
            deadline_s=SOON_S / 2,
            what="the calls above the bound are refused",
        )
        assert caller.fits(2)
        leader.store.is_open.set()
        failures = [decode_failure(cast("grpc.Call", call.exception())) for call in calls]
    assert Counter(failure.kind for failure in failures if failure) == {
        FailureKind.OVERLOADED: 4,
        FailureKind.RESERVATION_UNKNOWN: MAX_CALLER_FORWARDED,
    }


@pytest.mark.parametrize("leads", [True, False], ids=["this replica", "a third one"])
def test_a_waiting_call_ends_when_the_lease_passes_to(
    replicas: tuple[Replica, Replica], *, leads: bool
) -> None:
    _, follower = replicas
    with listening(PAIR) as leader, calling(follower) as caller:
        follower.follow(leader.address)
        call = caller.stub.Reserve.future(
            reserve_request(), timeout=SOON_S, metadata=caller.metadata
        )
        assert leader.has_call.wait(SOON_S)
        if leads:
            follower.lead()
        else:
            follower.follow("127.0.0.1:1")
        failure = decode_failure(cast("grpc.Call", call.exception(timeout=SOON_S / 2)))
        assert failure is not None
        assert failure.kind is FailureKind.NO_LEADER
        assert leader.calls[0].has_ended.wait(SOON_S)


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        pytest.param(((LEADER_VERSION, "0.9"),), "(0.9)", id="another version"),
        pytest.param((), "(an earlier one)", id="a version that names none"),
    ],
)
def test_a_call_may_be_repeated_if_it_is_refused_by_a_leader_with(
    replicas: tuple[Replica, Replica], named: tuple[tuple[str, str], ...], shown: str
) -> None:
    _, follower = replicas
    with listening(PAIR) as leader, calling(follower) as caller:
        follower.follow(leader.address)
        leader.failure = CallFailure(FailureKind.INVALID_REQUEST, "field 9 is unknown", "spec")
        leader.metadata = named
        call = caught(caller.reserve)
        failure = decode_failure(call)
        assert failure is not None
        assert failure.kind is FailureKind.LEADER_DIFFERS
        assert is_transient(call)
        assert shown in failure.problem
        assert f"({version('toponaut')})" in failure.problem
        assert "(spec: field 9 is unknown)" in failure.problem
        leader.metadata = ((LEADER_VERSION, version("toponaut")),)
        assert failed(caller.reserve) == leader.failure, "a leader of the same version is right"


def test_a_leader_names_its_version_to_a_follower(replicas: tuple[Replica, Replica]) -> None:
    leader, _ = replicas
    with calling(leader) as caller:
        caller.metadata += ((FORWARDED_FOR, b""),)
        call = caught(lambda: caller.confirm(7))
        assert (LEADER_VERSION, version("toponaut")) in call.initial_metadata()


def test_it_forwards_nothing_that_a_follower_answers_itself(
    replicas: tuple[Replica, Replica],
) -> None:
    _, follower = replicas
    with listening(PAIR) as leader, calling(follower) as caller:
        follower.follow(leader.address)
        trial = reserve_request()
        trial.validate_only = True
        answer = caller.stub.Reserve(trial, timeout=SOON_S, metadata=caller.metadata)
        assert answer.placement.feasible
        assert caller.fits(2)
        follower.store.refusal = Refusal(RefusalKind.NOT_LEADER, "replica x leads on its machine")
        assert failed(caller.reserve).kind is FailureKind.NOT_LEADER
        assert failed(caller.reserve).problem == "replica x leads on its machine"
    assert leader.calls == []


CLIENTS = Authority("clients")


@pytest.fixture
def mutual(tmp_path: Path, files: TlsFiles) -> TlsFiles:
    (tmp_path / "clients.crt").write_bytes(CLIENTS.pem)
    return files._replace(client_ca=tmp_path / "clients.crt")


@pytest.mark.parametrize("tokens", [None, TOKENS], ids=["alone", "and tokens"])
def test_the_holder_is_the_same_at_both_with_client_certificates(
    mutual: TlsFiles, tokens: Tokens | None
) -> None:
    token = "alice" if tokens else ""
    ann, ben = (CLIENTS.issue(name, f"{name}.example") for name in ("ann", "ben"))
    with replicated(mutual, tokens) as (leader, follower):
        with calling(follower, token, ann) as caller, calling(leader, token, ann) as direct:
            made = caller.reserve()
            assert made.reservation.id == id_of(1)
            assert direct.reserve() == made
            assert caller.confirm().phase == pb.RESERVATION_PHASE_CONFIRMED
        (row,) = leader.store.rows.values()
        assert row.holder == (token or "ann.example")
        with calling(follower, "bob" if tokens else "", ben) as other:
            assert failed(other.release).kind is FailureKind.NOT_HOLDER


def test_a_caller_that_names_another_holder_is_not_believed(mutual: TlsFiles) -> None:
    ann, eve = (CLIENTS.issue(name, f"{name}.example") for name in ("ann", "eve"))
    with replicated(mutual, None) as (leader, follower):
        with calling(leader, "", ann) as caller:
            caller.reserve()
        for replica, kind in (
            (leader, FailureKind.NOT_HOLDER),
            (follower, FailureKind.NOT_LEADER),  # what says that it is forwarded is not forwarded
        ):
            with calling(replica, "", eve) as caller:
                caller.metadata = ((FORWARDED_FOR, b"ann.example"),)
                assert failed(caller.release).kind is kind


def test_a_client_certificate_of_the_servers_authority_is_not_enough(mutual: TlsFiles) -> None:
    sibling = AUTHORITY.issue("toponaut-generator", *SERVICE_NAMES)
    with replicated(mutual, None) as (leader, _), calling(leader, "", sibling) as caller:
        assert caught(caller.reserve).code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("is_leader_first", "is_mutual"),
    [
        pytest.param(True, False, id="the leader, with tokens"),
        pytest.param(False, True, id="the follower, with client certificates"),
    ],
)
def test_a_renewed_certificate_may_reach_one_before_the_other(
    tmp_path: Path, *, is_leader_first: bool, is_mutual: bool
) -> None:
    (tmp_path / "clients.crt").write_bytes(CLIENTS.pem)
    ca = tmp_path / "clients.crt" if is_mutual else None
    mounts = [mount(tmp_path / name, PAIR) for name in ("leader", "follower")]
    tls = [one.files._replace(client_ca=ca) for one in mounts]
    tokens = None if is_mutual else TOKENS
    client = CLIENTS.issue("ann", "ann.example") if is_mutual else None
    order = (0, 1) if is_leader_first else (1, 0)
    with replicated(tls[0], tokens, tls[1]) as replicas:
        clocks = [replica.clock for replica in replicas]

        def reserve(number: int) -> None:
            replicas[1].calls.close()  # else the connection from before the renewal is used
            with calling(replicas[1], "" if is_mutual else "alice", client) as caller:
                assert caller.reserve(number).reservation.id == id_of(number)

        reserve(1)
        renewed = AUTHORITY.issue("toponaut-generator", *SERVICE_NAMES, "renewed.example")
        mounts[order[0]].deliver(renewed)
        reserve(2)
        for clock in clocks:
            clock.at_s += OVERLAP_S / 2
        mounts[order[1]].deliver(renewed)
        reserve(3)
        for number in (4, 5, 6):
            for clock in clocks:
                clock.at_s += OVERLAP_S / 2
            reserve(number)


def test_an_expired_certificate_is_not_presented_during_the_overlap(tmp_path: Path) -> None:
    expired = AUTHORITY.issue("toponaut-generator", *SERVICE_NAMES, lasts=timedelta(seconds=-1))
    secret = mount(tmp_path / "tls", expired)
    with replicated(secret.files, TOKENS) as (_, follower), calling(follower) as caller:
        assert caught(caller.reserve).code() is grpc.StatusCode.UNAVAILABLE
        secret.deliver(PAIR)
        with calling(follower) as again:
            assert again.reserve().reservation.id == id_of(1)
