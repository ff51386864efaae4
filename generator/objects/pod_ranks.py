"""What a pod says about its rank in its gang. Pure.

Ranks come from labels, annotations, variables and the arguments of torchrun, never from the names
of nodes. `jobs.rank_order` decides which of them counts.

Sources: torch/distributed/elastic/rendezvous/dynamic_rendezvous.py sorts nodes by the text of their
addresses; the label keys are those of the controllers that set them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

from generator.objects.document import mapping_at, rows_at

_ROLE_KEYS: Final = (
    "volcano.sh/task-spec",
    "jobset.sigs.k8s.io/replicatedjob-name",
    "training.kubeflow.org/replica-type",
    "kai.scheduler/subgroup-name",
    "leaderworkerset.sigs.k8s.io/group-index",
)
_INDEX_KEYS: Final = (
    "volcano.sh/task-index",
    "jobset.sigs.k8s.io/job-global-index",
    "jobset.sigs.k8s.io/job-index",
    "training.kubeflow.org/replica-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
    "kueue.x-k8s.io/pod-group-pod-index",
    "gang.scheduling.koordinator.sh/network-topology-index",
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
)
RANK_VARIABLES: Final = ("PET_NODE_RANK", "NODE_RANK", "RANK")
"""Variables with the rank of a pod. PET_… are the options of torchrun."""
_BACKEND_VARIABLE: Final = "PET_RDZV_BACKEND"
_DYNAMIC: Final = frozenset({"c10d", "etcd", "etcd-v2"})
"""Backends of torchrun that number the nodes themselves and ignore every given rank."""
_BACKEND_OPTIONS: Final = ("--rdzv-backend", "--rdzv_backend")
_NUMBER: Final = re.compile(r"[0-9]{1,9}\Z", re.ASCII)
UNKNOWN_INDEX: Final = 1 << 30
"""Stands for a missing label, so that it sorts last."""


class PodRank(NamedTuple):
    """What a pod says about its rank."""

    role: str = "pods"
    """The role of the pod in the gang."""
    indices: tuple[int, ...] = ()
    """The indices in labels and annotations; `UNKNOWN_INDEX` for a missing one."""
    variables: tuple[int | None, ...] = ()
    """The values of `RANK_VARIABLES`; empty without any of them."""
    address: str = ""
    """The host name by which torchrun numbers the nodes; empty unless it does so."""


UNRANKED: Final = PodRank()


def parse_pod_rank(pod: Mapping[str, Any]) -> PodRank:
    """Return what a decoded Pod says about its rank; malformed values are ignored."""
    metadata = mapping_at(pod, "metadata")
    marks = {**mapping_at(metadata, "labels"), **mapping_at(metadata, "annotations")}
    variables = tuple(_read_number(pod, name) for name in RANK_VARIABLES)
    return _intern(
        next((str(marks[key]) for key in _ROLE_KEYS if key in marks), UNRANKED.role),
        tuple(_parse_index(marks.get(key)) for key in _INDEX_KEYS),
        variables if set(variables) != {None} else (),
        _read_address(pod) if _read_backend(pod) in _DYNAMIC else "",
    )


@lru_cache(maxsize=4096)
def _intern(
    role: str, indices: tuple[int, ...], variables: tuple[int | None, ...], address: str
) -> PodRank:
    """Return one shared value for pods of several gangs with the same index."""
    return PodRank(role, indices, variables, address)


def _parse_index(value: object) -> int:
    text = str(value)
    return int(text) if _NUMBER.match(text) else UNKNOWN_INDEX


def _read_number(pod: Mapping[str, Any], variable: str) -> int | None:
    """Return the value of a variable; None unless all containers that set it agree."""
    values = {value for name, value in _read_variables(pod) if name == variable}
    text = values.pop() if len(values) == 1 else ""
    return int(text) if _NUMBER.match(text) else None


def _read_variables(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for container in rows_at(pod, "spec", "containers"):
        for row in rows_at(container, "env"):
            if isinstance(row.get("value"), str):
                yield str(row.get("name")), row["value"]


def _read_backend(pod: Mapping[str, Any]) -> str:
    """Return the rendezvous of torchrun in a pod; empty if it is not given."""
    for name, value in _read_variables(pod):
        if name == _BACKEND_VARIABLE:
            return value
    for container in rows_at(pod, "spec", "containers"):
        texts = [*_list_texts(container, "command"), *_list_texts(container, "args")]
        words = [word for text in texts for word in text.replace("=", " ").split()]
        for option, value in pairwise(words):
            if option in _BACKEND_OPTIONS:
                return value
    return ""


def _list_texts(container: Mapping[str, Any], key: str) -> list[str]:
    texts = container.get(key)
    return [str(text) for text in texts] if isinstance(texts, list) else []


def _read_address(pod: Mapping[str, Any]) -> str:
    """Return the host name that a pod sees as its own: of its node, or in its subdomain."""
    metadata, spec = mapping_at(pod, "metadata"), mapping_at(pod, "spec")
    if spec.get("hostNetwork") is True:
        return str(spec.get("nodeName") or "")
    name = str(spec.get("hostname") or metadata.get("name"))
    subdomain = spec.get("subdomain")
    namespace = metadata.get("namespace") or "default"
    return f"{name}.{subdomain}.{namespace}.svc" if subdomain else name
