"""`toponaut serve --kube` reserves: a killed leader, its successor, and other commands."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import grpc
import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import RESERVATIONS
from generator.rpc.status_errors import CallFailure, FailureKind, decode_failure
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import placement_pb2_grpc
from tests.generator.rpc.replicas import SERVICE_NAMES, Mount
from tests.generator.scenes import PAIRS, Scene, run
from tests.kube.accounts import AUDIENCE, create_accounts
from tests.kube.conftest import WRITER
from tests.kube.reservers import clear
from tests.kube.servers import DEADLINE_S, Cluster, Generator, serving
from tests.lab.api_server import ApiServer
from tests.lab.certificates import Authority

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]

AUTHORITY = Authority("ca")
GPUS = {"nvidia.com/gpu": 8}
GROUP = "scheduling.k8s.io/group-name"


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    clear(other_api)
    yield made
    other_api.revive()
    clear(other_api)
    made.clear()


def spec(gang: str, count: int) -> pb.PlacementSpec:
    request = {name: str(quantity) for name, quantity in GPUS.items()}
    return pb.PlacementSpec(gang=gang, groups=[pb.Group(name="w", count=count, request=request)])


class Caller:
    """Calls one replica; with a token over TLS, else without both."""

    def __init__(self, generator: Generator, token: str = "") -> None:
        self._address = generator.address
        self._metadata = (("authorization", f"Bearer {token}"),) if token else None

    def _open(self) -> grpc.Channel:
        if self._metadata is None:
            return grpc.insecure_channel(self._address)
        trust = grpc.ssl_channel_credentials(AUTHORITY.pem)
        name = (("grpc.ssl_target_name_override", SERVICE_NAMES[0]),)
        return grpc.secure_channel(self._address, trust, options=name)

    def reserve(self, gang: str, count: int, id_: str = "") -> pb.ReserveResponse:
        asked = pb.ReserveRequest(
            request_id=id_ or str(uuid4()), spec=spec(gang, count), ttl_s=3600
        )
        with self._open() as channel:
            stub = placement_pb2_grpc.PlacementServiceStub(channel)
            return stub.Reserve(asked, timeout=DEADLINE_S, metadata=self._metadata)

    def confirm(self, id_: str) -> pb.Reservation:
        with self._open() as channel:
            stub = placement_pb2_grpc.PlacementServiceStub(channel)
            return stub.Confirm(
                pb.ConfirmRequest(id=id_), timeout=DEADLINE_S, metadata=self._metadata
            ).reservation

    def fits(self, count: int) -> bool:
        with self._open() as channel:
            stub = placement_pb2_grpc.PlacementServiceStub(channel)
            asked = pb.PlaceRequest(spec=spec("ns/other", count))
            return bool(stub.Place(asked, timeout=DEADLINE_S).placement.feasible)


def refusal(caller: Caller) -> CallFailure:
    with pytest.raises(grpc.RpcError) as caught:
        caller.reserve("ns/x", 1)
    failure = decode_failure(caught.value)  # type: ignore[arg-type]  # it is a call, too
    assert failure is not None
    return failure


def order(cluster: Cluster, *replicas: Generator) -> list[Generator]:
    """Return the replicas, the leader first, once each knows the tree."""
    cluster.await_tree()
    for one in replicas:
        one.await_event("tree published")
    return sorted(replicas, key=lambda one: not cluster.holder().startswith(one.name))


def place(cluster: Cluster, file: Path, count: int) -> bool:
    file.write_text(
        "apiVersion: toponaut.io/v1alpha1\nkind: PlacementRequest\nspec:\n  groups:\n"
        f"  - {{name: w, count: {count}, request: {{nvidia.com/gpu: 8}}}}\n"
    )
    kubeconfig = cluster.api.kubeconfig(WRITER)
    ran = run("place", "-f", file, "--kube", "--kubeconfig", kubeconfig, "-o", "json")
    assert ran.code == ExitCode.OK, ran.err
    return bool(ran.document["feasible"])


@pytest.mark.long
def test_it_passes_every_reservation_on_when_a_leader_is_killed(
    cluster: Cluster, tmp_path: Path
) -> None:
    num = len(cluster.scene.hosts)
    with serving(cluster, tmp_path) as first, serving(cluster, tmp_path) as second:
        leader, follower = order(cluster, first, second)
        cluster.await_that(
            lambda: refusal(Caller(follower)).kind is FailureKind.NOT_LEADER,
            "the follower knows the leader",
        )
        refused = refusal(Caller(follower))
        assert refused.leader == "", "nobody else can use an address of loopback"
        assert f"pod/{leader.name}" in refused.problem
        made = [Caller(leader).reserve(f"ns/g{at}", 2) for at in range(3)]
        Caller(leader).confirm(made[0].reservation.id)
        cluster.await_that(lambda: not Caller(follower).fits(num - 5), "the follower has seen it")
        assert Caller(follower).fits(num - 6)
        assert not place(cluster, tmp_path / "r.yaml", num - 5)
        assert place(cluster, tmp_path / "r.yaml", num - 6)
        leader.kill()
        follower.await_event("leadership gained")
        caller = Caller(follower)
        for at, before in enumerate(made):
            again = caller.reserve(f"ns/g{at}", 2, before.reservation.id)
            assert again.placement == before.placement
            assert again.reservation.phase == (
                pb.RESERVATION_PHASE_RESERVED if at else pb.RESERVATION_PHASE_CONFIRMED
            )
        assert not caller.reserve("ns/more", num - 5).HasField("reservation")
        assert caller.confirm(made[1].reservation.id).phase == pb.RESERVATION_PHASE_CONFIRMED
        cluster.await_that(
            lambda: (
                {one["status"]["epoch"] for one in cluster.items(RESERVATIONS)}
                == {made[0].reservation.epoch + 1}
            ),
            "the successor has signed all of it",
        )
        kubeconfig = cluster.api.kubeconfig(WRITER)
        ran = run("reservations", "--kube", "--kubeconfig", kubeconfig, "-o", "json")
        assert len(ran.document) == 3


@pytest.mark.long
def test_a_follower_reserves_through_the_leader_with_the_callers_token(
    cluster: Cluster, tmp_path: Path
) -> None:
    accounts = create_accounts(cluster.api, cluster.namespace)
    secret = Mount(tmp_path / "tls")
    secret.deliver(AUTHORITY.issue(SERVICE_NAMES[0], *SERVICE_NAMES))
    # As in the chart: all addresses, a certificate of the Service, and the address of the pod.
    words = ["--listen", "0.0.0.0:0", "--tls-cert", str(secret.files.cert)]
    words += ["--tls-key", str(secret.files.key), "--token-audience", AUDIENCE]
    env = {"POD_IP": "localhost"}
    with (
        serving(cluster, tmp_path, *words, env=env) as first,
        serving(cluster, tmp_path, *words, env=env) as second,
    ):
        _, follower = order(cluster, first, second)
        caller = Caller(follower, accounts.token("scheduler"))
        made = caller.reserve("ns/a", 2)
        (stored,) = cluster.items(RESERVATIONS)
        assert stored["spec"]["holder"].endswith(f":{cluster.namespace}:scheduler")
        assert caller.confirm(made.reservation.id).phase == pb.RESERVATION_PHASE_CONFIRMED
        stranger = Caller(follower, accounts.token("stranger"))
        assert refusal(stranger).kind is FailureKind.FORBIDDEN


def test_it_counts_bound_pods_and_their_reservation_only_once(
    cluster: Cluster, tmp_path: Path
) -> None:
    num = len(cluster.scene.hosts)
    with serving(cluster, tmp_path) as generator:
        cluster.await_tree()
        caller = Caller(generator)
        gang = f"{cluster.namespace}/llm"
        made = caller.reserve(gang, 2)
        caller.confirm(made.reservation.id)
        assert caller.fits(num - 2)
        assert not caller.fits(num - 1)
        cluster.run_gang()  # makes the service account that pods need
        pods = f"/api/v1/namespaces/{cluster.namespace}/pods"
        limits = {name: str(n) for name, n in GPUS.items()}
        for at, node in enumerate(made.placement.assignment[0].nodes):
            metadata = {"name": f"llm-{at}", "annotations": {GROUP: "llm"}}
            box = {"name": "c", "image": "i", "resources": {"limits": limits, "requests": limits}}
            cluster.api.expect("POST", pods, {"metadata": metadata, "spec": {"containers": [box]}})
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            binding = {"metadata": {"name": f"llm-{at}"}, "target": target}
            cluster.api.expect("POST", f"{pods}/llm-{at}/binding", binding)
        path = RESERVATIONS.path(made.reservation.id)

        def is_used_up() -> bool:
            assert caller.fits(num - 2), "nothing is counted twice"
            assert not caller.fits(num - 1), "nothing is counted never"
            status = cluster.api.expect("GET", path)["status"]
            return bool(status["phase"] == "released" and status["message"] == "its pods are bound")

        cluster.await_that(is_used_up, "the pods have used it up")
        assert caller.fits(num - 2)
        assert not caller.fits(num - 1)
