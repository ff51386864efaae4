"""Kueue on Toponaut's Topology, flavor and labels: it admits gangs as low as the engine says."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from generator.cli.exit_codes import ExitCode
from tests.generator.scenes import run
from tests.live.gang_days import GangDay, draw_gangs, find_faults, run_day, scene_of
from tests.live.gangs import BY_SIZE, TIERS_BY_SIZE
from tests.live.kueue_cluster import QUEUE, KueueCluster, kueue_cluster

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("live kueue"),
]
NUM_NODES = 64


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KueueCluster]:
    folder = tmp_path / "kueue"
    folder.mkdir()
    with kueue_cluster(folder) as found:
        yield found


def test_the_job_of_a_user_gets_the_nodes_that_place_names(
    cluster: KueueCluster, tmp_path: Path
) -> None:
    day = GangDay(cluster, scene_of(tmp_path / "scene", NUM_NODES))
    requests = {"cpu": "32"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "labels": {"kueue.x-k8s.io/queue-name": QUEUE}},
        "spec": {
            "suspend": True,
            "parallelism": 12,
            "completions": 12,
            "completionMode": "Indexed",
            "template": {
                "metadata": {
                    "annotations": {"kueue.x-k8s.io/podset-required-topology": day.keys[2]}
                },
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [
                        {"name": "main", "image": "x", "resources": {"requests": requests}}
                    ],
                },
            },
        },
    }
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job))
    keys = ",".join(reversed(day.keys[1:]))
    cluster_options = ("--kube", "--kubeconfig", cluster.api.kubeconfig(), "--node-labels", keys)
    answer = run("place", "-f", file, "--preset", "kueue", *cluster_options, "-o", "json")
    assert answer.code == ExitCode.OK, answer.err
    (nodes,) = answer.document["assignment"].values()
    assert Counter(nodes) == Counter(cluster.submit_job(job))


def test_it_admits_gangs_as_low_as_the_engine_on_the_nodes_of_the_preset(
    cluster: KueueCluster, tmp_path: Path
) -> None:
    gangs = [*BY_SIZE, *draw_gangs(8, NUM_NODES, seed=7, num_kinds=(1,))]
    rows = run_day(cluster, scene_of(tmp_path, NUM_NODES), gangs)
    assert find_faults(rows) == []
    assert [row.engine_tier for row in rows[: len(BY_SIZE)]] == TIERS_BY_SIZE
    assert [row.scheduler_tier for row in rows[: len(BY_SIZE)]] == TIERS_BY_SIZE
