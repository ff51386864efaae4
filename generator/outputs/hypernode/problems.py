"""Problems of HyperNodes: their kinds, and what Volcano's scheduler does with each.

Source: volcano-sh/volcano v1.15: pkg/scheduler/api/hyper_node_info.go, the plugin
network-topology-aware, pkg/webhooks/admission/hypernodes, and the optional admission policy
installer/helm/chart/volcano/policy/hypernodes-validating.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple


class ProblemKind(StrEnum):
    """What is wrong."""

    INVALID_OBJECT = "invalid-object"
    DUPLICATE_NAME = "duplicate-name"
    NO_MEMBERS = "no-members"
    DUPLICATE_MEMBER = "duplicate-member"
    MISSING_CHILD = "missing-child"
    SEVERAL_PARENTS = "several-parents"
    CYCLE = "cycle"
    TIER_ORDER = "tier-order"
    TIER_GAP = "tier-gap"
    TIER_NAME = "tier-name"
    NODES_ABOVE_TIER_1 = "nodes-above-tier-1"
    SHARED_NODE = "shared-node"
    PLACEHOLDER = "placeholder"
    NAME = "name"
    RESERVED_NAME = "reserved-name"
    ADMISSION_POLICY = "admission-policy"
    INEXACT_MEMBERS = "inexact-members"
    INEXACT_CHILD = "inexact-child"
    INVALID_SELECTOR = "invalid-selector"
    EMPTY_SELECTION = "empty-selection"
    BROAD_PATTERN = "broad-pattern"
    UNKNOWN_NODE = "unknown-node"
    UNLISTED_NODES = "unlisted-nodes"


EFFECTS: Final[Mapping[ProblemKind, str]] = MappingProxyType(
    {
        ProblemKind.INVALID_OBJECT: "the API server or the webhook refuses it",
        ProblemKind.DUPLICATE_NAME: "the object that is applied last replaces the other",
        ProblemKind.NO_MEMBERS: "the webhook refuses it",
        ProblemKind.DUPLICATE_MEMBER: "remove the repeated member",
        ProblemKind.MISSING_CHILD: "the scheduler crashes at the next job with a topology",
        ProblemKind.SEVERAL_PARENTS: "the scheduler places no job with a topology",
        ProblemKind.CYCLE: "the scheduler places no job with a topology",
        ProblemKind.TIER_ORDER: "limits on tiers select the wrong HyperNodes",
        ProblemKind.TIER_GAP: "the scores of nodes become noise",
        ProblemKind.TIER_NAME: "highestTierName selects a tier at random",
        ProblemKind.NODES_ABOVE_TIER_1: "the scores of these nodes are wrong",
        ProblemKind.SHARED_NODE: "the scheduler takes one of them at random",
        ProblemKind.PLACEHOLDER: "run toponaut apply again",
        ProblemKind.NAME: "the API server refuses it",
        ProblemKind.RESERVED_NAME: "Volcano's own discovery fails in every round",
        ProblemKind.ADMISSION_POLICY: "Volcano's admission policy (custom.vap_enable) refuses it",
        ProblemKind.INEXACT_MEMBERS: "the members change with the names or labels of nodes",
        ProblemKind.INEXACT_CHILD: "the scheduler drops this member",
        ProblemKind.INVALID_SELECTOR: "the webhook refuses it, or it selects nothing",
        ProblemKind.EMPTY_SELECTION: "no job is placed there",
        ProblemKind.BROAD_PATTERN: "anchor the pattern with ^ and $",
        ProblemKind.UNKNOWN_NODE: "the scheduler ignores this member",
        ProblemKind.UNLISTED_NODES: "no job with a topology is placed there",
    }
)
"""What follows from a problem, or how to repair it."""


class HyperNodeProblem(NamedTuple):
    """One problem of a set of HyperNodes."""

    kind: ProblemKind
    subject: str
    """The HyperNode, node or tier, escaped."""
    line: str
    """The whole problem on one line, escaped."""

    @property
    def text(self) -> str:
        """The problem without its subject."""
        return self.line.removeprefix(f"{self.subject}: ")
