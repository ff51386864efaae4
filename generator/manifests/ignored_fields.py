"""The fields that had no effect, and whether they may matter for the answer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from generator.manifests.fields import ROOT

_ELSEWHERE: Final = re.compile(
    r"(?:^|\.)(?:"
    r"metadata(?!\.annotations|\.labels)|status|"
    r"activeDeadlineSeconds|args|automountServiceAccountToken|backoffLimit|backoffLimitPerIndex|"
    r"cleanPodPolicy|cliqueStartupType|command|completionMode|completions|controllerRef|coordinator|dependsOn|disruptionMode|dnsConfig|dnsPolicy|"
    r"elasticPolicy|enableServiceLinks|env|envFrom|failurePolicy|hostAliases|hostIPC|hostNetwork|"
    r"hostPID|hostname|image|imagePullPolicy|imagePullSecrets|initializer|labels|lifecycle|livenessProbe|"
    r"managedBy|manualSelector|maxFailedIndexes|maxRetry|minSuccess|mpiImplementation|network|"
    r"nprocPerNode|numProcPerNode|plugins|podFailurePolicy|podReplacementPolicy|policies|ports|"
    r"podGroupTemplateRef|preemptibility|priorityClassSource|queue|queueName|readinessProbe|restartPolicy|runtimeRef|"
    r"headlessServiceConfig|rollingUpdate|runLauncherAsWorker|runPolicy|roleName|runtimeClassName|scheduleTimeoutSeconds|schedulerName|"
    r"schedulingPolicy|securityContext|selector|serviceAccount|serviceAccountName|serviceName|"
    r"setHostnameAsFQDN|shareProcessNamespace|slotsPerWorker|sshAuthMountPath|scaleConfig|startsAfter|startupPolicy|"
    r"startupProbe|stdin|subdomain|successPolicy|suspend|terminationGracePeriodSeconds|"
    r"terminationDelay|updateStrategy|terminationMessagePath|terminationMessagePolicy|torch|ttlSecondsAfterFinished|tty|volumeClaims|"
    r"volumeDevices|volumeMounts|volumes|workingDir|workloadRef"
    r")(?:$|[.\[])"
)
_SCHEDULERS: Final = re.compile(
    r"\['[^']*(?:godel|kai\.scheduler|koordinator\.sh|kueue\.x-k8s\.io/pod|volcano\.sh|"
    r"exclusive-topology)[^']*'\]\Z"
)
_UNCHANGING: Final = re.compile(r"\['[^']*(?:queue-name|queue|priority-class|managed)'\]\Z")


class Relevance(StrEnum):
    """Whether an ignored field may affect placement."""

    NONE = "no effect on placement"
    POSSIBLE = "not supported; the system that it is for may place the pods differently"


class IgnoredField(NamedTuple):
    """A field that had no effect on the request."""

    path: str
    relevance: Relevance
    num_objects: int = 1
    """Number of objects with the field; `path` is that of the first object."""

    def __str__(self) -> str:
        """Return the path, and the number of further objects with the field."""
        return (
            f"{self.path} (and in {self.num_objects - 1} more)"
            if self.num_objects > 1
            else self.path
        )


def classify_ignored(paths: Iterable[str]) -> tuple[IgnoredField, ...]:
    """Return the ignored fields with their relevance; those that may matter come first.

    The same field of several objects, for example pods, is one row.
    """
    rows: dict[str, tuple[str, int]] = {}
    for path in paths:
        inner = path.partition(ROOT)[2]
        first, num = rows.get(inner, (path, 0))
        rows[inner] = (first, num + 1)
    ignored = [IgnoredField(first, _classify_path(first), num) for first, num in rows.values()]
    return tuple(sorted(ignored, key=lambda row: row.relevance is Relevance.NONE))


def _classify_path(path: str) -> Relevance:
    inner = path.partition(ROOT)[2]
    is_metadata = "metadata.annotations" in inner or "metadata.labels" in inner
    if is_metadata:
        matters = bool(_SCHEDULERS.search(inner)) and not _UNCHANGING.search(inner)
    else:
        matters = not _ELSEWHERE.search(inner)
    return Relevance.POSSIBLE if matters else Relevance.NONE
