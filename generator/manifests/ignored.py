"""Which fields were not used, and whether that may matter for the answer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

_ELSEWHERE: Final = re.compile(
    r"(?:^|\.)(?:"
    r"metadata(?!\.annotations|\.labels)|status|"
    r"activeDeadlineSeconds|args|automountServiceAccountToken|backoffLimit|backoffLimitPerIndex|"
    r"cleanPodPolicy|command|completionMode|completions|coordinator|dnsConfig|dnsPolicy|"
    r"elasticPolicy|enableServiceLinks|env|envFrom|failurePolicy|hostAliases|hostIPC|hostNetwork|"
    r"hostPID|hostname|image|imagePullPolicy|imagePullSecrets|lifecycle|livenessProbe|"
    r"managedBy|manualSelector|maxFailedIndexes|maxRetry|minSuccess|mpiImplementation|network|"
    r"nprocPerNode|plugins|podFailurePolicy|podReplacementPolicy|policies|ports|"
    r"preemptibility|priorityClassSource|queue|queueName|readinessProbe|restartPolicy|"
    r"runLauncherAsWorker|runPolicy|runtimeClassName|scheduleTimeoutSeconds|schedulerName|"
    r"schedulingPolicy|securityContext|selector|serviceAccount|serviceAccountName|serviceName|"
    r"setHostnameAsFQDN|shareProcessNamespace|slotsPerWorker|sshAuthMountPath|startupPolicy|"
    r"startupProbe|stdin|subdomain|successPolicy|suspend|terminationGracePeriodSeconds|"
    r"terminationMessagePath|terminationMessagePolicy|ttlSecondsAfterFinished|tty|volumeClaims|"
    r"volumeDevices|volumeMounts|volumes|workingDir"
    r")(?:$|[.\[])"
)
_SCHEDULERS: Final = re.compile(
    r"\['[^']*(?:godel|kai\.scheduler|koordinator\.sh|kueue\.x-k8s\.io/pod|volcano\.sh|"
    r"exclusive-topology)[^']*'\]\Z"
)
_UNCHANGING: Final = re.compile(r"\['[^']*(?:queue-name|queue|priority-class|managed)'\]\Z")


class Bearing(StrEnum):
    """What an ignored field is about."""

    NONE = "says nothing of places"
    POSSIBLE = "is not understood; the system that it is for may answer otherwise"


class Ignored(NamedTuple):
    """A field that had no effect on the request."""

    path: str
    bearing: Bearing


def judge(paths: Iterable[str]) -> tuple[Ignored, ...]:
    """Say of each path whether ignoring it may matter; those that may come first."""
    found = [Ignored(path, _bearing(path)) for path in paths]
    return tuple(sorted(found, key=lambda row: row.bearing is Bearing.NONE))


def _bearing(path: str) -> Bearing:
    is_metadata = ".metadata.annotations" in path or ".metadata.labels" in path
    if is_metadata:
        matters = bool(_SCHEDULERS.search(path)) and not _UNCHANGING.search(path)
    else:
        matters = not _ELSEWHERE.search(path)
    return Bearing.POSSIBLE if matters else Bearing.NONE
