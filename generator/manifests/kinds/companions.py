"""Kinds that accompany a workload and run no pods, with the reason why they are without effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
