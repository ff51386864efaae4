"""The memory of a server under many simultaneous calls."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeAlias, cast

import grpc
import pytest

from generator.rpc.limits import NUM_THREADS
from generator.rpc.published_state import PublishedState
from generator.rpc.server import PlacementServer
from generator.rpc.status_errors import FailureKind, decode_failure
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from tests.generator.rpc.clusters import place_message, request_for, snapshot_of
from tests.generator.rpc.servers import ANY_PORT, SOON_S

PLACE = "/toponaut.v1.PlacementService/Place"
MIB = 1 << 20
Raw: TypeAlias = "grpc.UnaryUnaryMultiCallable[bytes, bytes]"


def serve(pipe: Connection) -> None:
    """Serve in a separate process; answer each message with its peak memory."""
    nodes = tuple(f"n{number:04}" for number in range(500))
    server = PlacementServer(ANY_PORT, PublishedState(snapshot_of(nodes[:250], nodes[250:])))
    pipe.send(server.address)
    while pipe.recv() != "end":
        pipe.send(peak_bytes())
    server.stop(deadline_s=0)


def peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (peak,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(peak.split()[1]) * 1024


@contextmanager
def apart() -> Iterator[tuple[str, Callable[[], int]]]:
    """Yield the address of a server in another process, and a function for its peak memory."""
    context = multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,))
    process.start()

    def peak() -> int:
        pipe.send("peak")
        return cast("int", pipe.recv())

    try:
        yield pipe.recv(), peak
    finally:
        pipe.send("end")
        process.join(SOON_S)


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="reads its memory from /proc: run it on Linux"
)
@pytest.mark.parametrize(
    ("raw", "num", "fine"),
    [
        pytest.param(
            place_message(request_for(300)).SerializeToString(),
            500,
            grpc.StatusCode.OK,
            id="five hundred callers",
        ),
        pytest.param(
            pb.PlaceRequest(spec=pb.PlacementSpec(gang="x" * 3 * MIB)).SerializeToString(),
            250,
            grpc.StatusCode.INVALID_ARGUMENT,
            id="three megabytes each",
            marks=pytest.mark.long,
        ),
    ],
)
def test_it_bounds_its_memory_under_simultaneous_calls(
    raw: bytes, num: int, fine: grpc.StatusCode
) -> None:
    with apart() as (address, peak), ExitStack() as stack:
        options = (("grpc.use_local_subchannel_pool", 1),)
        channels = [
            stack.enter_context(grpc.insecure_channel(address, options=options)) for _ in range(10)
        ]
        methods: list[Raw] = [channel.unary_unary(PLACE) for channel in channels]
        methods[0](place_message(request_for(1)).SerializeToString(), timeout=SOON_S)
        before = peak()
        calls = [methods[at % 10].future(raw, timeout=4 * SOON_S) for at in range(num)]
        codes = Counter(call.code() for call in calls)
        assert set(codes) <= {fine, grpc.StatusCode.RESOURCE_EXHAUSTED}, codes
        assert codes[fine] >= NUM_THREADS
        refused = {FailureKind.INVALID_REQUEST, FailureKind.OVERLOADED}
        assert {failure.kind for call in calls if (failure := decode_failure(call))} <= refused
        assert peak() - before < 400 * MIB
        assert methods[0](place_message(request_for(1)).SerializeToString(), timeout=SOON_S)
