"""The pods of a gang in its file: those that wait, run, have ended, or are being deleted.

Pods that run keep their nodes, and the others are placed beside them. Pods that have ended do not
count. Pods that are being deleted are not placed, but use their nodes until they have ended.

A file may have a workload with its pods, as `kubectl get` prints them. They are found by the labels
that the controller of the workload sets, and pods that have completed are not placed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from generator.manifests.fields import Field
from generator.manifests.objects import KubeObject, Manifests
from generator.objects.document import mapping_at
from generator.objects.pods import parse_pod_usage
from generator.placement.quantities import render_quantities
from topology.model.errors import ConfigError, PlacementRequestError, list_some

PODS: Final = "pods"
"""The key under which a group holds its `GroupPods` until `split_gang` removes it."""
_MAX_NODES_SHOWN: Final = 8


class MemberPod(NamedTuple):
    """A pod of a group that has a node."""

    pod: KubeObject
    rank: int | None
    """The index of the pod in its group; None: unknown."""


class GroupPods(NamedTuple):
    """The template of the pods of a group, and its pods that run."""

    template: Field
    running: tuple[MemberPod, ...]


class RunningRow(NamedTuple):
    """A pod that runs, as a request counts it."""

    node: str
    group: str | None
    """Name of its group; None: it is not of the gang."""
    request: Mapping[str, int | str]
    """Quantities."""
    rank: int | None = None


class GangParts(NamedTuple):
    """A request for the pods that wait, and the pods that run."""

    spec: dict[str, Any]
    running: tuple[RunningRow, ...]


def keep_members(
    pods: Sequence[KubeObject], find_group: Callable[[KubeObject], str]
) -> list[KubeObject]:
    """Return the waiting pods, and the running pods of the same groups.

    If no pod waits, all pods are returned.
    """
    waiting = {find_group(pod) for pod in pods if not pod.node}
    return [pod for pod in pods if not pod.node or not waiting or find_group(pod) in waiting]


def find_members(pods: Sequence[KubeObject]) -> tuple[MemberPod, ...]:
    """Return the pods of a group that run; the index in `pods` is the rank."""
    return tuple(MemberPod(pod, index) for index, pod in enumerate(pods) if pod.node)


def split_gang(spec: dict[str, Any], manifests: Manifests) -> GangParts:
    """Return the spec for the pods that wait, and all pods of the file that run.

    Args:
        spec: the spec for all pods of the gang; its groups name the running pods.
        manifests: the objects in the file.

    Raises:
        PlacementRequestError: no pod waits, or the resources of a pod are malformed.
    """
    members: list[KubeObject] = []
    running: list[RunningRow] = []
    for row in walk_leaves(spec["groups"]):
        pods = row.pop(PODS).running if PODS in row else ()
        row["count"] -= len(pods)
        if "min" in row or not row["count"]:
            row["min"] = max(row.get("min", 0) - len(pods), 0)
        members += [member.pod for member in pods]
        running += [
            RunningRow(member.pod.node, row["name"], row["request"], member.rank) for member in pods
        ]
    if running:
        if not any(row["count"] for row in walk_leaves(spec["groups"])):
            problem = f"no pod waits for a node: {len(running)} run already"
            raise PlacementRequestError(members[0].title, problem)
        if "min" in spec:
            spec = spec | {"min": max(spec["min"] - len(running), 0)}
        nodes = list_some((row.node for row in running), _MAX_NODES_SHOWN)
        members[0].field.note(f"pods of the gang run on {nodes} and keep their nodes")
    others = tuple(_find_other_pods(manifests, members))
    return GangParts(spec, (*running, *others))


def walk_leaves(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the groups that have no child groups, at any depth."""
    for row in rows:
        if "children" in row:
            yield from walk_leaves(row["children"])
        else:
            yield row


def _find_other_pods(manifests: Manifests, members: Iterable[KubeObject]) -> Iterator[RunningRow]:
    """Yield the pods that are on a node and not in the gang, and mark those that do not count."""
    own = {id(pod.field) for pod in members}
    for pod in manifests.select("Pod", group=""):
        if pod.has_ended:
            pod.field.raw()
            pod.field.note("has ended and is not placed")
        elif id(pod.field) not in own and pod.node:
            pod.field.raw()
            pod.field.note(
                "is being deleted: it is not placed, and uses its node until it has ended"
                if pod.is_terminating
                else "is not of the gang, and uses its node"
            )
            yield _build_other(pod)
        elif pod.is_terminating:
            pod.field.raw()
            pod.field.note("is being deleted and is not placed")


def _build_other(pod: KubeObject) -> RunningRow:
    try:
        usage = parse_pod_usage(mapping_at(pod.field.value))
    except ConfigError as error:
        raise PlacementRequestError(pod.title, str(error)) from error
    return RunningRow(pod.node, None, render_quantities(usage.units.items()) if usage else {})


class PodKeys(NamedTuple):
    """Labels or annotations of the pods of a kind of workload."""

    owner: tuple[str, ...]
    """Keys with the name of the workload."""
    role: str = ""
    """Key with the name of the set of pods."""
    ranks: tuple[str, ...] = ()
    """Keys with the index of a pod in its set; of two, the first is the index of its replica."""
    is_recreated: bool = False
    """Whether the controller creates a new pod for each that has completed."""


_JOB_SET: Final = PodKeys(
    ("jobset.sigs.k8s.io/jobset-name",),
    "jobset.sigs.k8s.io/replicatedjob-name",
    ("jobset.sigs.k8s.io/job-index", "batch.kubernetes.io/job-completion-index"),
)
_KUBEFLOW: Final = PodKeys(
    ("training.kubeflow.org/job-name",),
    "training.kubeflow.org/replica-type",
    ("training.kubeflow.org/replica-index",),
)
_KEYS: Final[Mapping[str, PodKeys]] = {
    "batch/Job": PodKeys(
        ("batch.kubernetes.io/job-name", "job-name"),
        ranks=("batch.kubernetes.io/job-completion-index",),
    ),
    "jobset.x-k8s.io/JobSet": _JOB_SET,
    "trainer.kubeflow.org/TrainJob": _JOB_SET,
    "batch.volcano.sh/Job": PodKeys(
        ("volcano.sh/job-name",), "volcano.sh/task-spec", ("volcano.sh/task-index",)
    ),
    "leaderworkerset.x-k8s.io/LeaderWorkerSet": PodKeys(
        ("leaderworkerset.sigs.k8s.io/name",),
        ranks=("leaderworkerset.sigs.k8s.io/worker-index",),
        is_recreated=True,
    ),
    "apps/StatefulSet": PodKeys((), ranks=("apps.kubernetes.io/pod-index",), is_recreated=True),
    "apps/ReplicaSet": PodKeys((), is_recreated=True),
    **{
        f"kubeflow.org/{kind}": _KUBEFLOW
        for kind in ("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")
    },
    **{
        f"ray.io/{kind}": PodKeys(
            ("ray.io/cluster", "ray.io/originated-from-cr-name"), "ray.io/group", is_recreated=True
        )
        for kind in ("RayCluster", "RayJob", "RayService")
    },
    "kueue.x-k8s.io/Workload": PodKeys(("kueue.x-k8s.io/workload",), "kueue.x-k8s.io/podset"),
}
"""By group and kind. Pods that their workload owns need no label with its name."""
_REPLICA: Final = "leaderworkerset.sigs.k8s.io/group-index"
_LEADER: Final = "leader"
_ROLES: Final[Mapping[str, str]] = {"headgroup": "head"}
"""By the value of a role: the name of its set, if it has another one."""
_DONE: Final = "Succeeded"


class SetPods(NamedTuple):
    """The pods of a set of a workload."""

    name: str
    num_pods: int
    """The pods that run or are to be placed."""
    per_replica: int
    """Pods of each replica, if the set consists of several."""
    running: tuple[MemberPod, ...] = ()


def find_set_pods(
    owner: KubeObject, sets: Sequence[SetPods], manifests: Manifests
) -> tuple[SetPods, ...]:
    """Return the sets of a workload with their pods that run, without pods that have completed."""
    keys = _KEYS.get(f"{owner.group}/{owner.kind}")
    if keys is None or not sets:
        return tuple(sets)
    own = [pod for pod in manifests.select("Pod", group="") if _is_of(pod, owner, keys)]
    if len({_read_label_or_annotation(pod, _REPLICA) for pod in own}) > 1:
        return tuple(sets)  # pods of several replicas: each replica is a separate gang
    names = [row.name for row in sets]
    members: dict[str, list[KubeObject]] = {name: [] for name in names}
    for pod in own:
        members.get(_find_set(pod, keys, names), []).append(pod)
    return tuple(_add_to_set(owner, row, members[row.name], keys=keys) for row in sets)


def _is_of(pod: KubeObject, owner: KubeObject, keys: PodKeys) -> bool:
    spaces = [item.field.get("metadata", "namespace").value for item in (pod, owner)]
    if None not in spaces and spaces[0] != spaces[1]:
        return False
    if any(_read_label_or_annotation(pod, key) == owner.name for key in keys.owner):
        return True
    rows = pod.field.get("metadata", "ownerReferences").items()
    return any(
        (row.get("kind").value, row.get("name").value) == (owner.kind, owner.name) for row in rows
    )


def _read_label_or_annotation(pod: KubeObject, key: str) -> str:
    """Return the value of a label or annotation; empty if there is none."""
    return pod.labels.get(key).text() or pod.annotations.get(key).text()


def _find_set(pod: KubeObject, keys: PodKeys, names: Sequence[str]) -> str:
    if keys.role:
        role = _read_label_or_annotation(pod, keys.role)
        return _ROLES.get(role, role) if len(names) > 1 else names[0]
    if _LEADER in names:
        return _LEADER if _read_label_or_annotation(pod, keys.ranks[0]) == "0" else names[-1]
    return names[0]


def _add_to_set(
    owner: KubeObject, pods: SetPods, members: Iterable[KubeObject], *, keys: PodKeys
) -> SetPods:
    """Return a set with its pods that run. Its template describes the pods that wait."""
    running: list[MemberPod] = []
    num_done = 0
    for pod in members:
        if pod.has_ended:
            num_done += pod.field.get("status", "phase").value == _DONE
        elif not pod.is_terminating:
            pod.field.raw()
            if pod.node:
                running.append(MemberPod(pod, _find_rank(pod, pods, keys)))
    num_pods = pods.num_pods if keys.is_recreated else _count_left(owner, pods, num_done)
    # While a workload shrinks, more pods run than it asks for.
    running.sort(key=lambda member: -1 if member.rank is None else member.rank)
    return pods._replace(num_pods=num_pods, running=tuple(running[:num_pods]))


def _count_left(owner: KubeObject, pods: SetPods, num_done: int) -> int:
    """Return how many pods of a set still run at once when this many have completed.

    A Job with completions creates the next pods then. The status of a workload counts all pods that
    completed, also those that its file does not list.
    """
    is_job = (owner.group, owner.kind) == ("batch", "Job")
    completions = owner.spec.get("completions").optional_integer() if is_job else None
    wanted = pods.num_pods if completions is None else completions
    left = wanted - max(num_done, _count_done(owner, pods))
    return max(min(pods.num_pods, left), 0)


def _count_done(owner: KubeObject, pods: SetPods) -> int:
    """Return the pods of a set that have completed by the status of their workload.

    Source: JobSet v1alpha2, `replicatedJobsStatus`, which counts jobs; Kueue, KEP 78 on reclaimable
    pods; Volcano, `taskStatusCount`; Kubeflow, `replicaStatuses`.
    """
    status = owner.field.get("status")
    match owner.group, owner.kind:
        case "batch", "Job":
            return status.get("succeeded").integer(0)
        case "jobset.x-k8s.io", "JobSet":
            jobs = _count_named(status.get("replicatedJobsStatus"), pods.name, "succeeded")
            return jobs * pods.per_replica
        case "kueue.x-k8s.io", "Workload":
            return _count_named(status.get("reclaimablePods"), pods.name, "count")
        case "batch.volcano.sh", "Job":
            return status.get("taskStatusCount", pods.name, "phase", _DONE).integer(0)
        case "kubeflow.org", _:
            roles = status.get("replicaStatuses").entries()
            rows = [row for role, row in roles if role.lower() == pods.name]
            return sum(row.get("succeeded").integer(0) for row in rows)
    return 0


def _count_named(rows: Field, name: str, count: str) -> int:
    """Return a count of the row with a name; 0 if there is no such row."""
    named = [row for row in rows.items() if row.get("name").text() == name]
    return sum(row.get(count).integer(0) for row in named)


def _find_rank(pod: KubeObject, pods: SetPods, keys: PodKeys) -> int | None:
    """Return the index of a pod in its set, from the indices of the replica and of the pod in it.

    If a LeaderWorkerSet has a leader, the indices of its workers begin at 1. Workers have no
    slices, so only their order matters.
    """
    texts = [_read_label_or_annotation(pod, key) for key in keys.ranks]
    if not texts or not all(text.isascii() and text.isdecimal() for text in texts):
        return None
    *replicas, rank = map(int, texts)
    return sum(replicas) * pods.per_replica + rank
