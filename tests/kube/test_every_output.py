"""Every output on a real server: applied, changed, held, approved and removed.

One row per output, so that a new one without a row fails. A change moves a host and renames the
tiers, which together change the objects of every output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import HYPERNODES, NODES, Resource
from generator.objects.outputs import OutputType
from generator.outputs.formats import DEFAULT_PREFIX
from generator.reconcile.rendered import KINDS
from tests.generator.scenes import PAIRS, Scene
from tests.kube.conftest import WRITER, prepare
from tests.kube.grove_kind import GROVE_KIND
from tests.kube.servers import (
    DEADLINE_S,
    OFTEN,
    PORT_OPTIONS,
    OutputCluster,
    Ports,
    serving,
)
from tests.lab.api_server import ApiServer, find_assets
from tests.lab.wait import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400), pytest.mark.xdist_group("kube outputs")]

Content = Mapping[str, object]
FLAVOR = {"name": "gpu", "nodeLabels": {"kubernetes.io/os": "linux"}}
SETTINGS: Mapping[OutputType, Mapping[str, object]] = {
    OutputType.LABELS: {"compat": ["topograph", "nvidia"]},
    OutputType.KAI: {"aliases": False},
}
EVERY = [{"type": str(kind), **SETTINGS.get(kind, {})} for kind in OutputType]
OTHERS = [kind for kind in OutputType if kind is not OutputType.HYPERNODE]


def marked(node: Mapping[str, Any], part: str, prefix: str) -> dict[str, str]:
    found = node["metadata"].get(part, {})
    return {key: value for key, value in found.items() if key.startswith(prefix)}


def on_nodes(part: str, prefix: str) -> Callable[[OutputCluster], Content]:
    """Return what reads the labels or annotations of nodes whose keys begin so."""

    def read(cluster: OutputCluster) -> Content:
        found = {
            node["metadata"]["name"]: marked(node, part, prefix) for node in cluster.items(NODES)
        }
        return {name: values for name, values in found.items() if values}

    return read


def in_objects(kind: OutputType) -> Callable[[OutputCluster], Content]:
    """Return what reads the objects of an output: those of its field manager."""

    def is_ours(found: Mapping[str, Any]) -> bool:
        rows = found["metadata"].get("managedFields", [])
        return any(row["manager"] == f"toponaut-{kind}" for row in rows)

    def read_kind(cluster: OutputCluster, resource: Resource) -> Content:
        return {
            f"{resource.plural}/{found['metadata']['name']}": {
                key: found.get(key) for key in ("spec", "data", "binaryData")
            }
            for found in cluster.items(resource)
            if is_ours(found)
        }

    return lambda cluster: {
        key: value for one in KINDS[kind] for key, value in read_kind(cluster, one).items()
    }


def of_hypernodes(cluster: OutputCluster) -> Content:
    return {row["metadata"]["name"]: row["spec"] for row in cluster.items(HYPERNODES)}


READERS: Mapping[OutputType, Callable[[OutputCluster], Content]] = {
    **{kind: in_objects(kind) for kind in OTHERS},
    OutputType.HYPERNODE: of_hypernodes,
    OutputType.LABELS: on_nodes("labels", DEFAULT_PREFIX),
    OutputType.SLINKY: on_nodes("annotations", "topology.slinky.slurm.net/"),
}
"""What each output has written, by object."""


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[OutputCluster]:
    other_api.install(GROVE_KIND)
    made = OutputCluster.of_consumers(other_api, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    made.clear()


def contents(cluster: OutputCluster) -> dict[OutputType, Content]:
    return {kind: READERS[kind](cluster) for kind in OutputType}


def states(cluster: OutputCluster) -> dict[str, str]:
    """Return the state of each output as `tree --kube` prints it."""
    shown = cluster.toponaut("tree")
    assert shown.code == ExitCode.OK, shown.err
    table = shown.out.partition("\nOUTPUT ")[2].splitlines()[1:]
    return {row.split()[0]: row.split()[1] for row in table}


def await_states(cluster: OutputCluster, wanted: Mapping[str, str]) -> None:
    """Wait until `tree --kube` prints these states."""
    cluster.await_that(lambda: states(cluster) == wanted, f"tree --kube prints {wanted}")


def test_every_output_is_applied_held_approved_and_removed(
    cluster: OutputCluster, tmp_path: Path
) -> None:
    everywhere = dict.fromkeys(map(str, OutputType), "Written")
    cluster.choose(*EVERY)
    check_plan_and_apply(cluster)
    before = cluster.num_writes()
    with serving(cluster, tmp_path, *OFTEN, *PORT_OPTIONS) as generator:
        cluster.await_written(*EVERY)
        cluster.await_tree()
        applied = contents(cluster)
        rewritten = {one.resource for one in cluster.writes(before)} & {HYPERNODES.plural, "nodes"}
        assert not rewritten, "a server leaves what the command has applied"
        await_states(cluster, everywhere)
        cluster.check_rest(Ports(generator))
        check_held_and_approved(cluster, applied)
        await_states(cluster, everywhere)
        cluster.choose({"type": "labels"})
        cluster.await_written({"type": "labels"})
        cluster.await_that(lambda: not of_hypernodes(cluster), "HyperNodes are removed")
        left = contents(cluster)
        assert [kind for kind, found in left.items() if found] == [OutputType.LABELS]
        cluster.await_that(
            lambda: cluster.conditions()["Ready"] == "TreeDecided", "the tree alone is decided"
        )
        await_states(cluster, {"labels": "Written"})


def is_held(cluster: OutputCluster, plan: str) -> bool:
    """Return whether the plan follows from all reports and from the present settings."""
    return bool(plan) and f"plan {plan} is held" in cluster.toponaut("plan").err


def check_held_and_approved(cluster: OutputCluster, applied: dict[OutputType, Content]) -> None:
    """Check that a held change changes no output, and that its approval changes all of them."""
    changed = {"outputs": EVERY, "tierNames": ["rack", "row"], "changeBudget": {"nodesPercent": 0}}
    cluster.want(outputs=EVERY, changeBudget={"nodesPercent": 0})
    one, other = cluster.scene.hosts[0], cluster.scene.hosts[-1]
    cluster.report(cluster.traded(one, other))
    cluster.await_that(cluster.held, "the move is held")
    first = cluster.held()
    cluster.want(**changed)
    cluster.await_that(
        lambda: cluster.held() != first and is_held(cluster, cluster.held()),
        "the new names are held as well",
    )
    assert contents(cluster) == applied
    assert set(states(cluster).values()) == {"Held"}
    approved = cluster.toponaut("approve", cluster.held())
    assert approved.code == ExitCode.OK, approved.err

    def unchanged() -> list[OutputType]:
        found = contents(cluster)
        return [kind for kind in OutputType if found[kind] == applied[kind]]

    wait_until(unchanged, deadline_s=DEADLINE_S, what="every output has changed")
    cluster.await_written(*EVERY)


def check_plan_and_apply(cluster: OutputCluster) -> None:
    """Check that `apply` writes every output once, and that `plan` agrees before and after."""
    options = ("--namespace", cluster.namespace)
    planned = cluster.toponaut("plan", "--check", *options)
    assert planned.code == ExitCode.CHECK_FAILED
    assert [kind for kind in OTHERS if f"output {kind} Pending: 0 written" not in planned.err] == []
    assert not any(contents(cluster).values())
    applied = cluster.toponaut("apply", *options)
    assert applied.code == ExitCode.OK, applied.err
    found = contents(cluster)
    assert [kind for kind in OutputType if not found[kind]] == []
    assert cluster.toponaut("plan", "--check", *options).code == ExitCode.OK
    before = cluster.num_writes()
    assert cluster.toponaut("apply", *options).code == ExitCode.OK
    assert cluster.writes(before) == [], "a second apply writes nothing"


@pytest.mark.long
def test_kueue_gets_the_older_version_where_only_that_is_served(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    with ApiServer(
        find_assets("programs"), tmp_path_factory.mktemp("old-kueue"), users=[WRITER]
    ) as server:
        prepare(server)
        for file in sorted(find_assets("consumers").glob("kueue*.yaml")):
            server.install(with_one_version(yaml.safe_load(file.read_text()), "v1beta1"))
        cluster = OutputCluster(server, Scene.of(tmp_path / "scene", PAIRS))
        outputs: list[dict[str, Any]] = [{"type": "labels"}, {"type": "kueue", "flavor": FLAVOR}]
        cluster.choose(*outputs)
        path = "/apis/kueue.x-k8s.io/v1beta1"
        with serving(cluster, tmp_path, *OFTEN, *PORT_OPTIONS) as generator:
            cluster.await_written(*outputs)
            levels = server.expect("GET", f"{path}/topologies/toponaut")["spec"]["levels"]
            assert levels[-2:] == [
                {"nodeLabel": f"{DEFAULT_PREFIX}/leaf"},
                {"nodeLabel": "kubernetes.io/hostname"},
            ]
            flavor = server.expect("GET", f"{path}/resourceflavors/gpu")["spec"]
            assert flavor["topologyName"] == "toponaut"
            cluster.check_rest(Ports(generator))
            cluster.choose({"type": "labels"})
            cluster.await_written({"type": "labels"})
            assert server.expect("GET", f"{path}/topologies")["items"] == []


def with_one_version(definition: dict[str, Any], version: str) -> dict[str, Any]:
    """Return a kind as a release that serves one version only has it."""
    spec = definition["spec"]
    kept = [{**row, "storage": True} for row in spec["versions"] if row["name"] == version]
    assert kept, f"{spec['names']['kind']} has no {version}"
    return {**definition, "spec": {**spec, "versions": kept}}
