"""What has no effect on placement: fields of metadata and of pods, and whole kinds of objects.

Anyone may define a label or an annotation. A key of a scheduler, of a job controller or of a
webhook that changes pods may matter, unless a row here says why it does not. No system that places
pods reads other keys.

Source: the OpenAPI of Kubernetes 1.37, and the plugins of kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from generator.manifests.fields import Field, FieldTable, Row

_NOT_READ: Final = "no scheduler or webhook that Toponaut knows reads this key"
_QUOTA: Final = "chooses a quota; the answer is for the nodes that you give"
_WHEN: Final = "says when the pods start, not where"
_EVICTION: Final = "says when running pods are evicted"
_WRITTEN: Final = "is written by the controller of the job"
_SYSTEM_DOMAINS: Final = (
    "4pd.io",
    "aliyun.com",
    "amd.com",
    "cloud.google.com",
    "cni.cncf.io",
    "codeflare.dev",
    "codeflare.dev.appwrapper",
    "gke-gcsfuse",
    "godel.bytedance.com",
    "grove.io",
    "hami.io",
    "hashicorp.com",
    "huawei.com",
    "istio.io",
    "jobset.sigs.k8s.io",
    "kai.scheduler",
    "koordinator.sh",
    "kubewharf.io",
    "kueue.x-k8s.io",
    "leaderworkerset.sigs.k8s.io",
    "linkerd.io",
    "nvidia.com",
    "ray.io",
    "resource.kubernetes.io",
    "run.ai",
    "runai",
    "scheduler.alpha.kubernetes.io",
    "scheduling.k8s.io",
    "scheduling.sigs.k8s.io",
    "scheduling.x-k8s.io",
    "slinky.slurm.net",
    "volcano.sh",
    "vpc.amazonaws.com",
    "yunikorn.apache.org",
)
"""Domains of keys that schedulers, job controllers and webhooks read; subdomains count."""
_SYSTEM_KEYS: Final = frozenset(
    {
        "gpu-fraction",
        "gpu-fraction-container-name",
        "gpu-fraction-num-devices",
        "gpu-memory",
        "pod-group-name",
        "priorityClassName",
        "runai-gpu-group",
    }
)
"""Keys without a domain that KAI and run:ai read."""
_INJECTION_KEYS: Final = frozenset({"sidecar.istio.io/inject", "linkerd.io/inject"})
_INJECTS_NOTHING: Final = frozenset({"false", "disabled"})
KEYS: Final[Mapping[str, str]] = {
    "kueue.x-k8s.io/queue-name": _QUOTA,
    "kueue.x-k8s.io/local-queue-name": _QUOTA,
    "kueue.x-k8s.io/cluster-queue-name": _QUOTA,
    "kueue.x-k8s.io/priority-class": _WHEN,
    "kueue.x-k8s.io/priority-boost": _WHEN,
    "kueue.x-k8s.io/admission-gated-by": _WHEN,
    "kueue.x-k8s.io/max-exec-time-seconds": _EVICTION,
    "kueue.x-k8s.io/pod-group-max-not-ready-count": _EVICTION,
    "kueue.x-k8s.io/safe-to-forcefully-delete": _EVICTION,
    "kueue.x-k8s.io/retriable-in-group": _EVICTION,
    "kueue.x-k8s.io/pod-group-serving": _EVICTION,
    "kueue.x-k8s.io/job-completions-equal-parallelism": "changes the job after it is placed",
    "kueue.x-k8s.io/managed": _WRITTEN,
    "kueue.x-k8s.io/podset": _WRITTEN,
    "kueue.x-k8s.io/workload": _WRITTEN,
    "kueue.x-k8s.io/job-uid": _WRITTEN,
    "kueue.x-k8s.io/job-owner-gvk": _WRITTEN,
    "kueue.x-k8s.io/job-owner-name": _WRITTEN,
    "kueue.x-k8s.io/component-workload-index": _WRITTEN,
    "kueue.x-k8s.io/role-hash": _WRITTEN,
    "kueue.x-k8s.io/is-group-workload": _WRITTEN,
    "kueue.x-k8s.io/pod-suspending-parent": _WRITTEN,
    "kueue.x-k8s.io/stopping": _WRITTEN,
    "kai.scheduler/queue": _QUOTA,
    "kai.scheduler/preemptibility": _EVICTION,
    "kai.scheduler/preemption-delay": _WHEN,
    "kai.scheduler/staleness-grace-period": _EVICTION,
    "kai.scheduler/stale-podgroup-timestamp": _WRITTEN,
    "kai.scheduler/last-start-timestamp": _WRITTEN,
    "kai.scheduler/last-eviction-timestamp": _WRITTEN,
    "kai.scheduler/top-owner-metadata": _WRITTEN,
    "gpu-fraction-container-name": "says which container of a pod uses the device",
    "runai/queue": _QUOTA,
    "volcano.sh/queue-name": _QUOTA,
    "scheduling.volcano.sh/queue-name": _QUOTA,
    "scheduling.volcano.sh/group-min-resources": _WHEN,
    "volcano.sh/sla-waiting-time": _WHEN,
    "volcano.sh/preemptable": _EVICTION,
    "volcano.sh/cooldown-time": _EVICTION,
    "volcano.sh/jdb-min-available": _EVICTION,
    "volcano.sh/jdb-max-unavailable": _EVICTION,
    "volcano.sh/task-spec": _WRITTEN,
    "volcano.sh/task-index": _WRITTEN,
    "volcano.sh/job-name": _WRITTEN,
    "volcano.sh/job-namespace": _WRITTEN,
    "volcano.sh/job-version": _WRITTEN,
    "volcano.sh/job-retry-count": _WRITTEN,
    "volcano.sh/job-type": _WRITTEN,
    "volcano.sh/template-uid": _WRITTEN,
    "gang.scheduling.koordinator.sh/waiting-time": _WHEN,
    "quota.scheduling.koordinator.sh/name": _QUOTA,
    "jobset.sigs.k8s.io/coordinator": _WRITTEN,
    "jobset.sigs.k8s.io/global-replicas": _WRITTEN,
    "jobset.sigs.k8s.io/job-global-index": _WRITTEN,
    "jobset.sigs.k8s.io/job-group-index": _WRITTEN,
    "jobset.sigs.k8s.io/job-index": _WRITTEN,
    "jobset.sigs.k8s.io/job-key": _WRITTEN,
    "jobset.sigs.k8s.io/jobset-name": _WRITTEN,
    "jobset.sigs.k8s.io/jobset-uid": _WRITTEN,
    "jobset.sigs.k8s.io/group-name": _WRITTEN,
    "jobset.sigs.k8s.io/group-replicas": _WRITTEN,
    "jobset.sigs.k8s.io/replicatedjob-name": _WRITTEN,
    "jobset.sigs.k8s.io/replicatedjob-replicas": _WRITTEN,
    "jobset.sigs.k8s.io/restart-attempt": _WRITTEN,
    "jobset.sigs.k8s.io/in-place-restart-attempt": _WRITTEN,
    "jobset.sigs.k8s.io/disable-in-place-restart": _EVICTION,
    "leaderworkerset.sigs.k8s.io/group-index": _WRITTEN,
    "leaderworkerset.sigs.k8s.io/group-key": _WRITTEN,
    "leaderworkerset.sigs.k8s.io/leader-name": _WRITTEN,
    "leaderworkerset.sigs.k8s.io/name": _WRITTEN,
    "leaderworkerset.sigs.k8s.io/replicas": _WRITTEN,
    "leaderworkerset.sigs.k8s.io/size": _WRITTEN,
    "leaderworkerset.sigs.k8s.io/template-revision-hash": _WRITTEN,
    "leaderworkerset.sigs.k8s.io/worker-index": _WRITTEN,
    "leaderworkerset.sigs.k8s.io/experimental-recreate-group-after-start": _EVICTION,
    "leaderworkerset.sigs.k8s.io/subdomainPolicy": "names the pods in the network",
    "ray.io/cluster": _WRITTEN,
    "ray.io/group": _WRITTEN,
    "ray.io/node-type": _WRITTEN,
    "ray.io/is-ray-node": _WRITTEN,
    "ray.io/identifier": _WRITTEN,
    "ray.io/originated-from-cr-name": _WRITTEN,
    "ray.io/originated-from-crd": _WRITTEN,
    "ray.io/ft-enabled": "says where Ray keeps its state",
    "ray.io/external-storage-namespace": "says where Ray keeps its state",
    "ray.io/overwrite-container-cmd": "says what a container runs",
    "ray.io/disable-provisioned-head-restart": _EVICTION,
    "ray.io/enable-serve-service": "names the pods in the network",
}
"""Keys of these domains without effect, with the reason."""


def find_key_row(key: str, field: Field) -> str | None:
    """Return why a label or an annotation is without effect; None if it may matter."""
    if key in KEYS:
        return KEYS[key]
    if key in _INJECTION_KEYS and str(field.value).lower() in _INJECTS_NOTHING:
        return "says that no container is added to the pods"
    domain = key.rpartition("/")[0]
    is_known = any(f".{domain}".endswith(f".{known}") for known in _SYSTEM_DOMAINS)
    return None if is_known or key in _SYSTEM_KEYS else _NOT_READ


_BOOKKEEPING: Final = "is kept by the API server"
_NAME: Final = "names an object"
METADATA: Final[Mapping[str, Row]] = {
    "annotations": find_key_row,
    "labels": find_key_row,
    "creationTimestamp": _BOOKKEEPING,
    "finalizers": "says what happens when the object is deleted",
    "generateName": _NAME,
    "generation": _BOOKKEEPING,
    "managedFields": _BOOKKEEPING,
    "name": _NAME,
    "namespace": _NAME,
    "ownerReferences": "says who deletes the object",
    "resourceVersion": _BOOKKEEPING,
    "selfLink": _BOOKKEEPING,
    "uid": _BOOKKEEPING,
}
"""A time of deletion may matter."""
STATUS: Final = "is what the cluster reported"


def list_object_fields(spec: FieldTable) -> FieldTable:
    """Return the table of an object whose spec has these fields."""
    return {"metadata": METADATA, "spec": spec, "status": STATUS}


RUNS: Final = "says what the containers run"
ENDS: Final = "says how pods end, and what follows"
NAMES: Final = "names the pods in the network"
ACCOUNT: Final = "says what the pods may do in the cluster"
PROBES: Final = "says when a container is ready"
FILES: Final = "needs no certain node"
_ISOLATION: Final = "says what containers may do on their node"
_VOLUME: Final[FieldTable] = {
    "name": FILES,
    "azureFile": FILES,
    "cephfs": FILES,
    "configMap": FILES,
    "downwardAPI": FILES,
    "emptyDir": FILES,
    "gitRepo": FILES,
    "glusterfs": FILES,
    "hostPath": "kube-scheduler does not look for files of a node",
    "image": FILES,
    "nfs": FILES,
    "projected": FILES,
    "quobyte": FILES,
    "secret": FILES,
}
"""The scheduler looks at claims, at disks that are attached to a node, and at limits of drivers."""
CONTAINER: Final[FieldTable] = {
    "args": RUNS,
    "command": RUNS,
    "env": RUNS,
    "envFrom": RUNS,
    "image": RUNS,
    "imagePullPolicy": RUNS,
    "lifecycle": ENDS,
    "livenessProbe": PROBES,
    "ports": {"containerPort": NAMES, "name": NAMES, "protocol": NAMES},
    "readinessProbe": PROBES,
    "resizePolicy": "says how a running container is resized",
    "restartPolicy": ENDS,
    "restartPolicyRules": ENDS,
    "securityContext": _ISOLATION,
    "startupProbe": PROBES,
    "stdin": RUNS,
    "stdinOnce": RUNS,
    "terminationMessagePath": ENDS,
    "terminationMessagePolicy": ENDS,
    "tty": RUNS,
    "volumeDevices": RUNS,
    "volumeMounts": RUNS,
    "workingDir": RUNS,
}
POD_SPEC: Final[FieldTable] = {
    "activeDeadlineSeconds": ENDS,
    "automountServiceAccountToken": ACCOUNT,
    "containers": CONTAINER,
    "dnsConfig": NAMES,
    "dnsPolicy": NAMES,
    "enableServiceLinks": NAMES,
    "ephemeralContainers": "is added to running pods, without resources of its own",
    "evictionResponders": ENDS,
    "hostAliases": NAMES,
    "hostIPC": _ISOLATION,
    "hostPID": _ISOLATION,
    "hostUsers": _ISOLATION,
    "hostname": NAMES,
    "hostnameOverride": NAMES,
    "imagePullSecrets": ACCOUNT,
    "initContainers": CONTAINER,
    "os": "is checked by the kubelet, not by the scheduler",
    "readinessGates": PROBES,
    "restartPolicy": ENDS,
    "schedulingGates": "says when the pods are placed, not where",
    "securityContext": _ISOLATION,
    "serviceAccount": ACCOUNT,
    "serviceAccountName": ACCOUNT,
    "setHostnameAsFQDN": NAMES,
    "shareProcessNamespace": _ISOLATION,
    "subdomain": NAMES,
    "terminationGracePeriodSeconds": ENDS,
    "volumes": _VOLUME,
}
"""`nodeName`, spread constraints, classes of priority and of runtime, and claims may matter."""
POD_TEMPLATE: Final[FieldTable] = {"metadata": METADATA, "spec": POD_SPEC}
POD: Final[FieldTable] = list_object_fields(POD_SPEC)


_FILES: Final = "holds values that containers read"
_ACCESS: Final = "says who may do what in the cluster"
_TRAFFIC: Final = "directs traffic to pods, wherever they run"
COMPANIONS: Final[Mapping[tuple[str, str], str]] = {
    ("", "ConfigMap"): _FILES,
    ("", "Namespace"): "holds objects",
    ("", "Secret"): _FILES,
    ("", "Service"): _TRAFFIC,
    ("", "ServiceAccount"): _ACCESS,
    ("gateway.networking.k8s.io", "HTTPRoute"): _TRAFFIC,
    ("networking.k8s.io", "Ingress"): _TRAFFIC,
    ("networking.k8s.io", "NetworkPolicy"): _TRAFFIC,
    ("policy", "PodDisruptionBudget"): "says which running pods may be evicted",
    ("rbac.authorization.k8s.io", "ClusterRole"): _ACCESS,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _ACCESS,
    ("rbac.authorization.k8s.io", "Role"): _ACCESS,
    ("rbac.authorization.k8s.io", "RoleBinding"): _ACCESS,
}
"""By API group and kind."""
