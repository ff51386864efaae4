"""Options as guides and scripts of HPC sites give them, on nodes of 8 GPUs, 64 CPUs and 500 GB.

A row has the number of nodes that a job uses, and its groups as (pods, what each requests).
slurmctld gives as many on such nodes (`tests/lab/test_sbatch.py`).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.generator.manifests.slurm.clusters import (
    EQUAL,
    GIB,
    GPU,
    groups_of,
    placed,
    used_nodes,
)

Groups = list[tuple[int, dict[str, Any]]]
GUIDES: list[tuple[str, int, Groups]] = [
    # NERSC, OLCF: GPUs of a task, tasks of a GPU
    ("-C gpu -N 2 --ntasks-per-node=4 -c 16 --gpus-per-task=1", 2, [(2, {GPU: 4, "cpu": 64})]),
    ("-C gpu -N 2 --ntasks-per-node=4 -c 32 --gpus-per-task=1", 0, [(2, {GPU: 4, "cpu": 128})]),
    ("-N 8 --gpus-per-node=4 --ntasks-per-gpu=2", 8, [(8, {GPU: 4, "cpu": 8})]),
    ("-n 1 -c 32 --gpus-per-task=1", 1, [(1, {GPU: 1, "cpu": 32})]),
    ("-N 8 --ntasks-per-node=8 --gpus-per-task=1 --gpu-bind=closest", 8, [(8, {GPU: 8, "cpu": 8})]),
    # CSC, LUMI
    ("--nodes=2 --ntasks-per-node=8 --gpus-per-node=8", 2, [(2, {GPU: 8, "cpu": 8})]),
    (
        "--nodes=2 --ntasks-per-node=1 --gpus-per-node=1 --cpus-per-task=7 --mem=480G",
        2,
        [(2, {GPU: 1, "cpu": 7, "memory": 480 * GIB})],
    ),
    (
        "--nodes=1 --gpus-per-node=1 --mem-per-gpu=60G --cpus-per-task=56",
        1,
        [(1, {GPU: 1, "cpu": 56, "memory": 60 * GIB})],
    ),
    ("--nodes=2 --gpus-per-node=8 --mem-per-gpu=60G", 2, [(2, {GPU: 8, "memory": 480 * GIB})]),
    ("--nodes=2 --gpus-per-node=8 --mem-per-gpu=64G", 0, [(2, {GPU: 8, "memory": 512 * GIB})]),
    # JSC, ZIB, PC2
    ("--nodes=4 --ntasks=16 --ntasks-per-node=4 --gres=gpu:4", 4, [(4, {GPU: 4, "cpu": 4})]),
    ("--nodes=4 --ntasks=16 --gres=gpu:4", 4, [(4, {GPU: 4, "cpu": 4})]),
    ("--nodes=2 --ntasks=16 --ntasks-per-node=8 --switches=1", 2, [(2, {"cpu": 8})]),
    ("--nodes=3 --ntasks-per-node=64", 3, [(3, {"cpu": 64})]),
    ("--nodes=3 --ntasks-per-node=72", 0, [(3, {"cpu": 72})]),
    # OpenMMLab and others that start one task per GPU
    (
        "--gres=gpu:8 --ntasks=16 --ntasks-per-node=8 --cpus-per-task=5",
        2,
        [(2, {GPU: 8, "cpu": 40})],
    ),
    (
        "--gres=gpu:8 --ntasks=64 --ntasks-per-node=8 --cpus-per-task=5",
        8,
        [(8, {GPU: 8, "cpu": 40})],
    ),
    (
        "--gres=gpu:8 --ntasks=72 --ntasks-per-node=8 --cpus-per-task=5",
        0,
        [(9, {GPU: 8, "cpu": 40})],
    ),
    ("--nodes=2 --gres=gpu:8 --ntasks-per-node=1", 2, [(2, {GPU: 8, "cpu": 1})]),
    (
        "--ntasks-per-node=1 --cpus-per-task=4 --gres=gpu:4 --gpus-per-task=4 --nodes=1",
        1,
        [(1, {GPU: 4, "cpu": 4})],
    ),
    ("--gpus-per-task=8 --cpus-per-gpu=8 --ntasks=1", 1, [(1, {GPU: 8, "cpu": 64})]),
    ("--gpus-per-task=8 --cpus-per-gpu=12 --ntasks=1", 0, [(1, {GPU: 8, "cpu": 96})]),
    # MareNostrum: whole nodes
    (
        "--nodes=4 --ntasks-per-node=1 --gres=gpu:4 --cpus-per-task=64 --exclusive",
        4,
        [(4, {GPU: 4, "cpu": 64})],
    ),
    ("--exclusive --mem=0 -N 2", 2, [(2, {"slots": 1})]),
    # totals: SNL, UWyo, SDSC, SURF, Michigan
    ("--gpus=16", 2, [(16, {GPU: 1, "pods": 0})]),
    ("--gpus=12", 2, [(12, {GPU: 1, "pods": 0})]),
    ("-G 8 --gpus-per-node 1 -N 8", 8, [(8, {GPU: 1})]),
    ("-N 10 --gpus-per-node 1 -G 10", 0, [(10, {GPU: 1})]),
    ("--gpus=1 --ntasks-per-gpu=1 --cpus-per-gpu=12", 1, [(1, {GPU: 1, "cpu": 12, "pods": 0})]),
    ("--ntasks-per-gpu=4 --gres=gpu:1 --mem=64G", 1, [(1, {GPU: 1, "cpu": 4, "memory": 64 * GIB})]),
    (
        "--nodes=1 --ntasks=4 --ntasks-per-node=4 --gpus=4 --cpus-per-task=4",
        1,
        [(1, {GPU: 4, "cpu": 16})],
    ),
    (
        "--nodes=1 --ntasks-per-node=16 --gpus=1 --mem=92G",
        1,
        [(1, {GPU: 1, "cpu": 16, "memory": 92 * GIB})],
    ),
    (
        "--gres=gpu:1 --cpus-per-gpu=3 --mem-per-gpu=72G",
        1,
        [(1, {GPU: 1, "cpu": 3, "memory": 72 * GIB})],
    ),
    ("--gpus=64 --cpus-per-gpu=8", 8, [(64, {GPU: 1, "cpu": 8, "pods": 0})]),
    ("--gpus=64 --cpus-per-gpu=9", 0, [(64, {GPU: 1, "cpu": 9, "pods": 0})]),
    # Alliance Canada, NeSI, Princeton: tasks with memory per CPU
    ("--ntasks=1024 --mem-per-cpu=4G", 0, [(1024, {"cpu": 1, "memory": 4 * GIB, "pods": 0})]),
    ("--ntasks=512 --mem-per-cpu=4G", 8, [(512, {"cpu": 1, "memory": 4 * GIB, "pods": 0})]),
    ("--ntasks=8 --switches=1@0:10:00", 1, [(8, {"cpu": 1, "pods": 0})]),
    ("--ntasks=64 --cpus-per-task=4", 4, [(64, {"cpu": 4, "pods": 0})]),
    ("-n 4 --gpus-per-task=1 -c 6", 1, [(4, {GPU: 1, "cpu": 6, "pods": 0})]),
    ("-n 40 --array=1-9 --exclude=n3", 1, [(40, {"cpu": 1, "pods": 0})]),
    (
        "--nodes=2 --ntasks=4 --gres=gpu:1 --mem=32G --cpus-per-task=2",
        2,
        [(2, {GPU: 1, "cpu": 4, "memory": 32 * GIB})],
    ),
    ("-N 1 -n 2 --tasks-per-node=64 --threads-per-core=2", 1, [(1, {"cpu": 64})]),
    ("-N 2-6 --gpus-per-node=8", 6, [(6, {GPU: 8})]),
    # heterogeneous jobs: NVIDIA NeMo, COSMA, RWTH; components share no node
    (
        (
            "-N 6 --ntasks-per-node 8 --exclusive --gpus-per-node=8 : "
            "-N 2 --ntasks-per-node 8 --exclusive --gpus-per-node=8"
        ),
        8,
        [(6, {GPU: 8, "cpu": 8, "slots": 1}), (2, {GPU: 8, "cpu": 8, "slots": 1})],
    ),
    (
        "-N 7 --ntasks-per-node 8 : -N 2 --ntasks-per-node 8 --gpus-per-node=8",
        0,
        [(7, {"cpu": 8, "slots": 1}), (2, {GPU: 8, "cpu": 8, "slots": 1})],
    ),
    (
        "--nodes=1 --tasks-per-node=1 : --nodes=2 --tasks-per-node=8",
        3,
        [(1, {"cpu": 1, "slots": 1}), (2, {"cpu": 8, "slots": 1})],
    ),
    (
        "--ntasks=64 --cpus-per-task=4 --mem-per-cpu=1G : --ntasks=1 --mem-per-cpu=16G",
        5,
        [
            (64, {"cpu": 4, "memory": 4 * GIB, "pods": 0}),
            (1, {"cpu": 1, "memory": 16 * GIB}),
        ],
    ),
]


@pytest.mark.parametrize(
    ("options", "num_nodes", "groups"), [pytest.param(*row, id=row[0]) for row in GUIDES]
)
def test_it_places_on_as_many_nodes_as_slurm(options: str, num_nodes: int, groups: Groups) -> None:
    rows = groups_of(options, EQUAL)
    assert [(row["count"], row["request"]) for row in rows] == groups
    placement = placed(options, EQUAL)
    assert len(used_nodes(placement)) == num_nodes
    assert placement.is_feasible == (num_nodes > 0)
    assert all(None not in row for row in placement.assignment.values())
