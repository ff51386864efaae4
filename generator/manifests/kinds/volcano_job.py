"""Jobs of Volcano: tasks of equal pods.

Source: volcano-sh/volcano v1.15.1, batch/v1alpha1 and the plugins of its job controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from generator.manifests.fields import Field, FieldTable
from generator.manifests.kinds.object_fields import ENDS, POD_TEMPLATE, RUNS, list_object_fields
from generator.manifests.kinds.pod_sets import PodSet, WorkloadKind, mark_scheduler
from generator.manifests.objects import KubeObject, Manifests

_LEADERS: Final[Mapping[str, tuple[str, str]]] = {
    "mpi": ("master", "master"),
    "pytorch": ("master", "master"),
    "ray": ("head", "head"),
    "tensorflow": ("chief", "chief"),
}
"""By plugin: the argument that names the task of rank 0, and its name by default."""
_LEADING_NAMES: Final = frozenset({"chief", "driver", "head", "launcher", "leader", "master"})
"""Names of the task of rank 0, if no plugin names it."""
_VOLCANO_JOB: Final[FieldTable] = list_object_fields(
    {
        "maxRetry": ENDS,
        "minSuccess": ENDS,
        "plugins": RUNS,
        "policies": ENDS,
        "queue": "chooses a quota; the answer is for the nodes that you give",
        "runningEstimate": "says how long the job runs",
        "tasks": {
            "dependsOn": "says in which order pods start",
            "maxRetry": ENDS,
            "policies": ENDS,
            "template": POD_TEMPLATE,
        },
        "ttlSecondsAfterFinished": ENDS,
    }
)
"""A class of priority, claims of volumes, and a policy for NUMA may matter."""


def _parse_tasks(owner: KubeObject, _: Manifests) -> list[PodSet]:
    """Return the tasks in their order, but first the task with rank 0.

    `dependsOn` is no order of ranks: a launcher starts after its workers.
    """
    mark_scheduler(owner.spec.get("schedulerName"))
    sets = []
    leaders = _find_leaders(owner.spec.get("plugins"))
    for index, row in enumerate(owner.spec.get("tasks").items()):
        name = row.get("name").text(f"task{index}")
        count = row.get("replicas").integer(1)
        sets.append(PodSet(name, count, row.get("template"), is_leading=name in leaders))
    return sorted(sets, key=lambda pods: not pods.is_leading)


def _find_leaders(plugins: Field) -> frozenset[str]:
    named = [
        _find_argument(plugins.get(plugin), argument) or default
        for plugin, (argument, default) in _LEADERS.items()
        if plugin in (plugins.value if isinstance(plugins.value, dict) else ())
    ]
    return frozenset(named) or _LEADING_NAMES


def _find_argument(arguments: Field, name: str) -> str:
    """Return the value of `--name=value` or `-name value`, as Go's flags take it."""
    words = [
        word
        for row in (arguments.value if isinstance(arguments.value, list) else ())
        for word in str(row).replace("=", " ", 1).split()
    ]
    return next((value for flag, value in pairwise(words) if flag.lstrip("-") == name), "")


VOLCANO_JOB: Final = WorkloadKind(_parse_tasks, _VOLCANO_JOB)
