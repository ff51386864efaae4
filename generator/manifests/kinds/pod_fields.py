"""The fields of pods and of pod templates that are without effect on placement.

Source: the OpenAPI of Kubernetes 1.37, and the plugins of kube-scheduler.
"""

from __future__ import annotations

from typing import Final

from generator.manifests.ignored_fields import FieldTable
from generator.manifests.kinds.metadata import METADATA, list_object_fields

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
