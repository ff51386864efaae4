"""Finds the PodGroup of a file, and the pods that belong to it."""

from __future__ import annotations

from generator.manifests.objects import KubeObject, Manifests
from topology.model.errors import PlacementRequestError


def find_only_group(manifests: Manifests, group: str) -> KubeObject | None:
    """Return the only PodGroup of an API group; None if there is none.

    Raises:
        PlacementRequestError: there are several PodGroups, or it has no spec.
    """
    groups = manifests.select("PodGroup", group=group)
    if len(groups) > 1:
        names = ", ".join(pod_group.title for pod_group in groups)
        problem = f"the file has {len(groups)} PodGroups, but one is placed at a time: {names}"
        raise PlacementRequestError(groups[1].title, problem)
    if not groups:
        return None
    if not groups[0].spec.exists:
        raise PlacementRequestError(f"{groups[0].title}: spec", "is missing")
    return groups[0]


def find_group_pods(manifests: Manifests, group: KubeObject, key: str) -> list[KubeObject]:
    """Return the pods that name the group in a label or annotation; all pods if none names any.

    A note is added to pods of other groups, because they are not placed.
    """
    names = [(pod, _find_group_name(pod, key)) for pod in manifests.pods]
    if not any(name for _, name in names):
        return [pod for pod, _ in names]
    for pod, name in names:
        if name != group.name:
            pod.field.raw()
            pod.field.note("belongs to another group and is not placed")
    return [pod for pod, name in names if name == group.name]


def _find_group_name(pod: KubeObject, key: str) -> str:
    return pod.annotations.get(key).text() or pod.labels.get(key).text()
