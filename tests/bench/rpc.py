"""Calls of the gRPC service against an empty echo call of the same run: python -m tests.bench.rpc.

Server and callers are two processes on loopback. Echo and placement calls take turns, so what else
runs on the machine slows both. Each gang has a name of its own, and the kinds of gangs repeat, as
those of a cluster's jobs do: so most answers of `Place` come from the cache of the snapshot. The
caller is a Python as any.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

import click
import grpc

from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.presets import Preset
from generator.rpc.client import PlacementClient
from generator.rpc.messages.requests import encode_request
from generator.rpc.published_state import PublishedState
from generator.rpc.server import PlacementServer
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import placement_pb2_grpc
from generator.simulation.replay.replay import build_tree_of_shape
from runtime.process_settings import collect_garbage_rarely, freeze_gc, tune_for_server
from tests.bench.gangs import MILLICORES, MIX, SHAPE, document_of

CALLS: Final = 2000
BATCHES: Final = 8
P50_TARGET: Final = 2.5
P99_TARGET: Final = 4.0
"""Times the echo call's."""
BATCH_TARGET: Final = 3.0
"""Times the gangs a second of single calls."""
_ECHO: Final = "/bench.Echo/Echo"
_LATE_S: Final = 60.0
_BATCH_GANGS: Final = 256
"""Gangs of a message."""
_now: Final = time.perf_counter


class Times(NamedTuple):
    """How long the calls of one kind took."""

    p50_s: float
    p99_s: float


class Measured(NamedTuple):
    """One run."""

    echo: Times
    place: Times
    unary_per_second: float
    batch_per_second: float
    """Gangs."""

    def ratios(self) -> dict[str, float]:
        """Return what the targets are about."""
        return {
            "p50": self.place.p50_s / self.echo.p50_s,
            "p99": self.place.p99_s / self.echo.p99_s,
            "batch": self.batch_per_second / self.unary_per_second,
        }


def serve(pipe: Connection) -> None:
    """Serve placements and echoes until something is said; the body of the other process.

    It is set as `toponaut serve` is.
    """
    collect_garbage_rarely()
    tune_for_server()
    tree = build_tree_of_shape(SHAPE)
    nodes = {name: NodeSpec(name, {"cpu": MILLICORES}) for name in tree.nodes}
    server = PlacementServer("127.0.0.1:0", PublishedState(build_snapshot(tree, nodes)))
    freeze_gc()
    echo = grpc.server(ThreadPoolExecutor(16), options=(("grpc.so_reuseport", 0),))
    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "Echo": grpc.unary_unary_rpc_method_handler(lambda message, _: message)
    }
    echo.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Echo", handlers),))
    port = echo.add_insecure_port("127.0.0.1:0")
    echo.start()
    pipe.send((server.address, f"127.0.0.1:{port}"))
    pipe.recv()
    server.stop(deadline_s=0)
    echo.stop(0).wait()


@contextmanager
def served() -> Iterator[tuple[str, str]]:
    """Yield the addresses of both services, in a process of their own."""
    context = multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,))
    process.start()
    try:
        yield pipe.recv()
    finally:
        pipe.send("end")
        process.join(_LATE_S)


def measure(calls: int, batches: int) -> Measured:
    """Return the times of so many calls of each kind, after some to warm up."""
    with (
        served() as (address, echo_address),
        grpc.insecure_channel(address) as channel,
        grpc.insecure_channel(echo_address) as other,
    ):
        stub = placement_pb2_grpc.PlacementServiceStub(channel)
        echo: grpc.UnaryUnaryMultiCallable[bytes, bytes] = other.unary_unary(_ECHO)
        messages = gangs(calls)
        for message in gangs(100):
            stub.Place(message, timeout=_LATE_S)
            echo(b"", timeout=_LATE_S)
        echoes, places = [], []
        for message in messages:
            echoes.append(_seconds(lambda: echo(b"", timeout=_LATE_S)))
            places.append(_seconds(lambda: stub.Place(message, timeout=_LATE_S)))  # noqa: B023 - called at once
        unary, batch = _rates(address, batches)
        return Measured(_times(echoes), _times(places), unary, batch)


def gangs(num: int) -> list[pb.PlaceRequest]:
    """Return requests of the mix, each for a gang of its own."""
    return [pb.PlaceRequest(spec=encode_request(gang(at, "job"))) for at in range(num)]


def gang(at: int, word: str) -> dict[str, Any]:
    """Return the document of a gang of the mix, with a name of its own."""
    document = document_of(MIX[at % len(MIX)], Preset.OPTIMAL)
    document["spec"]["gang"] = f"{word}-{at}"
    return document


def _rates(address: str, batches: int) -> tuple[float, float]:
    """Return gangs a second by single calls and by batches, taking turns."""
    requests = [gang(at, "b") for at in range(512)]
    single_s = batch_s = 0.0
    num = 0
    with PlacementClient(address, _LATE_S) as client:
        place_batch = placement_pb2_grpc.PlacementServiceStub(client.channel).PlaceBatch
        for _ in range(batches):
            batch_s += _seconds(lambda: list(place_batch(_messages(requests), timeout=_LATE_S)))
            for request in requests[:64]:
                single_s += _seconds(lambda: client.place(request))  # noqa: B023 - called at once
            num += 64
    return num / single_s, batches * len(requests) / batch_s


def _messages(requests: list[dict[str, Any]]) -> Iterator[pb.PlaceBatchRequest]:
    for row in range(0, len(requests), _BATCH_GANGS):
        specs = [encode_request(request) for request in requests[row : row + _BATCH_GANGS]]
        yield pb.PlaceBatchRequest(specs=specs)


def _seconds(call: Callable[[], object]) -> float:
    begun = _now()
    call()
    return _now() - begun


def _times(seconds: list[float]) -> Times:
    return Times(statistics.median(seconds), statistics.quantiles(seconds, n=100)[98])


@click.command()
@click.option("--calls", default=CALLS, show_default=True, type=click.IntRange(min=2))
@click.option("--batches", default=BATCHES, show_default=True, type=click.IntRange(min=1))
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text")
def main(calls: int, batches: int, output: str) -> None:
    """Measure the service against an echo call of the same run."""
    found = measure(calls, batches)
    ratios = found.ratios()
    if output == "json":
        click.echo(json.dumps({**found._asdict(), "ratios": ratios}))
        return
    click.echo(f"{calls} calls for gangs on {SHAPE} nodes; server and caller on one machine")
    for name, times in (("echo", found.echo), ("Place", found.place)):
        click.echo(f"{name:6} p50 {times.p50_s * 1e6:6.0f} us  p99 {times.p99_s * 1e6:6.0f} us")
    click.echo(f"p50 {ratios['p50']:.2f} x the echo's, target {P50_TARGET}")
    click.echo(f"p99 {ratios['p99']:.2f} x the echo's, target {P99_TARGET}")
    click.echo(
        f"PlaceBatch {found.batch_per_second:.0f} gangs/s, Place {found.unary_per_second:.0f}: "
        f"{ratios['batch']:.1f} x, target {BATCH_TARGET}"
    )


if __name__ == "__main__":
    main()
