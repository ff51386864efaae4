"""`toponaut serve --store` with reservations: after a kill, a restart, and a damaged file."""

import json
import signal
import subprocess  # noqa: TID251 - the real program is what is tested
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import grpc
import pytest

from generator.cli.exit_codes import ExitCode
from generator.reservations.legacy_sqlite import FILE_NAME
from generator.reservations.objects import RESERVATIONS
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import placement_pb2_grpc
from generator.store.folder_store import FolderStore
from tests.generator.scenes import PAIRS, Scene, run
from tests.lab.wait import wait_until
from tests.repository import ROOT

SOON_S = 60.0
SLOTS = 1000


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene.of(tmp_path, PAIRS)
    nodes = [{"name": name, "capacity": {"slots": SLOTS}} for name in made.hosts]
    (tmp_path / "nodes.json").write_text(json.dumps({"nodes": nodes}))
    made.store()
    return made


class Server:
    """A running server, called over one channel."""

    def __init__(self, program: subprocess.Popen[bytes], channel: grpc.Channel) -> None:
        self.program = program
        self.stub = placement_pb2_grpc.PlacementServiceStub(channel)

    def reserve(self, id_: str, gang: str) -> pb.ReserveResponse:
        spec = pb.PlacementSpec(gang=gang, groups=[pb.Group(name="w", count=3)])
        asked = pb.ReserveRequest(request_id=id_, spec=spec, ttl_s=3600)
        return self.stub.Reserve(asked, timeout=SOON_S)


@contextmanager
def serving(scene: Scene) -> Iterator[Server]:
    ready = scene.root / "ready"
    ready.unlink(missing_ok=True)
    words = ["--store", str(scene.root / "store"), "--nodes", str(scene.root / "nodes.json")]
    words += ["--insecure-loopback", "--listen", "127.0.0.1:0", "--ready-file", str(ready)]
    with (scene.root / "log").open("ab") as stream:
        program = subprocess.Popen(
            [sys.executable, "-m", "generator", "serve", *words],
            cwd=ROOT,
            stdout=stream,
            stderr=stream,
            stdin=subprocess.DEVNULL,
        )
    try:
        wait_until(lambda: None if ready.exists() else "not ready", deadline_s=SOON_S, what="ready")
        with grpc.insecure_channel(ready.read_text().strip()) as channel:
            server = Server(program, channel)
            wait_until(lambda: _why_not(server), deadline_s=SOON_S, what="a tree")
            yield server
    finally:
        program.kill()
        program.wait(SOON_S)
    assert "Traceback" not in (scene.root / "log").read_text()


def _why_not(server: Server) -> str | None:
    spec = pb.PlacementSpec(groups=[pb.Group(name="w", count=1)])
    try:
        server.stub.Place(pb.PlaceRequest(spec=spec), timeout=SOON_S)
    except grpc.RpcError as error:
        return str(error)
    return None


def test_it_keeps_every_acknowledged_reservation_after_a_kill(scene: Scene) -> None:
    answered: dict[str, pb.ReserveResponse] = {}
    gangs = {str(uuid4()): f"ns/g{at}" for at in range(400)}
    with serving(scene) as server, ThreadPoolExecutor(4) as pool:

        def ask(id_: str) -> None:
            try:
                answered[id_] = server.reserve(id_, gangs[id_])
            except grpc.RpcError:
                return
            if len(answered) >= 40:
                server.program.kill()

        list(pool.map(ask, gangs))
        assert server.program.wait(SOON_S) == -signal.SIGKILL
    assert 40 <= len(answered) < 400
    objects = FolderStore(scene.root / "store").read(RESERVATIONS).values
    stored = {row.reservation.id: row.reservation for row in objects if row.reservation is not None}
    assert stored.keys() >= answered.keys()
    taken = Counter(
        run.node
        for reservation in stored.values()
        for group in reservation.groups
        for run in group.runs
        for _ in range(run.count)
    )
    assert sum(taken.values()) == 3 * len(stored), "no reservation is incomplete"
    assert max(taken.values()) <= SLOTS
    with serving(scene) as server:
        for id_, before in answered.items():
            again = server.reserve(id_, gangs[id_])
            assert again.placement == before.placement
            assert again.reservation.id == before.reservation.id
            assert again.reservation.expires_at == before.reservation.expires_at
        id_ = next(iter(answered))
        confirmed = server.stub.Confirm(pb.ConfirmRequest(id=id_), timeout=SOON_S).reservation
        assert confirmed.phase == pb.RESERVATION_PHASE_CONFIRMED
        assert confirmed.epoch == 2


def test_it_refuses_to_serve_with_an_unusable_file(scene: Scene) -> None:
    file = scene.root / "store" / FILE_NAME
    file.write_text("my notes\n")
    words = ["serve", "--store", str(scene.root / "store"), "--insecure-loopback"]
    ran = run(*words, "--listen", "127.0.0.1:0")
    assert ran.code == ExitCode.NOTHING
    assert str(file) in ran.err
    assert "file is not a database" in ran.err
    assert "Traceback" not in ran.err
    assert file.read_text() == "my notes\n"
