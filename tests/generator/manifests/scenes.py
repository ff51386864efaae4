"""Short manifests as mappings, and their translations."""

from __future__ import annotations

from typing import Any

from generator.manifests.kinds.kubeflow import REPLICA_KEYS
from generator.manifests.manifest_request import Translation, translate

GPU = "nvidia.com/gpu"


def pod_spec(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - of a manifest
    """Return a pod spec of one container with eight GPUs."""
    return {"containers": [{"resources": {"requests": {GPU: 8}}}]} | fields


def pod_template(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - of a manifest
    """Return a template of such a pod; fields are of its spec."""
    return {"spec": pod_spec(**fields)}


def manifest(api: str, kind: str, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - of a manifest
    """Return an object named `train`."""
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "train"}, "spec": spec}


def kubeflow_job(kind: str, replicas: dict[str, int], **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - of a manifest
    """Return a training job of Kubeflow with the replicas of each role."""
    rows = {
        role: {"replicas": count, "template": pod_template()} for role, count in replicas.items()
    }
    return manifest("kubeflow.org/v1", kind, **{REPLICA_KEYS[kind]: rows}, **spec)


def job(name: str = "train", **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - of a manifest
    """Return a Job of four pods; fields are of its pod template's metadata, or its spec."""
    annotations = fields.pop("annotations", {})
    template = {"metadata": {"annotations": annotations}, "spec": pod_spec()}
    spec = {"parallelism": 4, "template": template} | fields
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": spec,
    }


def volcano_job(tasks: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a Volcano Job; each task gets a pod template."""
    rows = [{"template": {"spec": pod_spec()}} | task for task in tasks]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "v"},
        "spec": {"tasks": rows} | fields,
    }


def pod(name: str, *, labels: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a pod with eight GPUs."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}} | metadata,
        "spec": pod_spec(),
    }


def translated(*documents: object, levels: dict[str, str] | None = None) -> Translation:
    """Return the translation of the documents of one file; each starts on a new line."""
    return translate(list(enumerate(documents, 1)), levels=levels or {})


def spec_of(*documents: object, levels: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the spec of the translated request."""
    spec: dict[str, Any] = translated(*documents, levels=levels).document["spec"]
    return spec


def placed_pod(name: str, node: str = "", phase: str = "", **metadata: Any) -> dict[str, Any]:  # noqa: ANN401 - of a pod
    """Return a pod on a node, or one that waits."""
    made = pod(name, **metadata)
    made["spec"] |= {"nodeName": node} if node else {}
    return made | ({"status": {"phase": phase}} if phase else {})


def leaf_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [leaf for row in rows for leaf in (leaf_rows(row.get("children", [])) or [row])]
