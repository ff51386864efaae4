"""PodGroups of every system: which one, and which pods of the file are its."""

from __future__ import annotations

from generator.manifests.objects import Manifests, KubeObject
from topology.model.errors import PlacementRequestError


def find_only_group(manifests: Manifests, group: str) -> KubeObject | None:
    """Return the one PodGroup of an API group; None where there is none.

    Raises:
        PlacementRequestError: there are several, or it has no spec.
    """
    found = manifests.select("PodGroup", group=group)
    if len(found) > 1:
        names = ", ".join(one.title for one in found)
        problem = f"{len(found)} PodGroups are in the file, one is placed at a time: {names}"
        raise PlacementRequestError(found[1].title, problem)
    if not found:
        return None
    if not found[0].spec.exists:
        raise PlacementRequestError(f"{found[0].title}: spec", "is missing")
    return found[0]


def find_group_pods(manifests: Manifests, group: KubeObject, key: str) -> list[KubeObject]:
    """Return the pods that name the group under a label or annotation; all, if none does so.

    Pods of other groups are noted, as they are not placed.
    """
    named = [(pod, _find_group_name(pod, key)) for pod in manifests.pods]
    if not any(name for _, name in named):
        return [pod for pod, _ in named]
    for pod, name in named:
        if name != group.name:
            pod.field.raw()
            pod.field.note("is of another group, and not placed")
    return [pod for pod, name in named if name == group.name]


def _find_group_name(pod: KubeObject, key: str) -> str:
    return pod.annotations.get(key).text() or pod.labels.get(key).text()
