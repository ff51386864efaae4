"""The ranks of the gangs that run in a served cluster, and the finding about a poor order. Pure.

The ring of a gang is that of its largest world whose ranks are known: the others, such as a single
driver, communicate little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from generator.jobs.rank_order import RankAudit, TreePlaces, audit_ranks, list_worlds
from generator.objects.pods import BoundPod
from topology.model.errors import show
from topology.model.facts import Finding, FindingKind, Impact, PortName, Severity
from topology.model.tree import TopologyTree

GangAudit = RankAudit[BoundPod]
MIN_AGE: Final = timedelta(minutes=10)
"""A gang has a finding if none of its pods is younger, so that short jobs give none."""


def audit_gang(places: TreePlaces, pods: Sequence[BoundPod]) -> GangAudit | None:
    """Return the ranks of a gang in the tree; None if they are unknown or no ring has two nodes."""
    rings = [
        world
        for world in list_worlds(pods)
        if world.source and len({pod.node for pod in world.pods}) > 1
    ]
    if not rings:
        return None
    return audit_ranks(places, max(rings, key=lambda world: len(world.pods)))


def group_by_gang(pods: Sequence[BoundPod]) -> dict[str, list[BoundPod]]:
    """Return the pods of each gang, in the order given."""
    gangs: dict[str, list[BoundPod]] = {}
    for pod in pods:
        gangs.setdefault(pod.gang, []).append(pod)
    return gangs


class _Audited(NamedTuple):
    pods: list[BoundPod]
    audit: GangAudit | None


class GangRanks:
    """The audits of all gangs; a gang whose pods did not change is not audited again."""

    def __init__(self) -> None:
        """Start without a tree."""
        self._places: tuple[TopologyTree, TreePlaces] | None = None
        self._pods: Sequence[BoundPod] = ()
        self._known: dict[str, _Audited] = {}

    def update(
        self, tree: TopologyTree, pods: Sequence[BoundPod]
    ) -> Mapping[str, GangAudit | None]:
        """Return the audit of each gang; the cost of unchanged pods is a comparison."""
        if self._places is None or self._places[0] is not tree:
            self._places, self._known, self._pods = (tree, TreePlaces(tree)), {}, ()
        if not self._known or self._pods != pods:
            places, known = self._places[1], self._known
            self._known = {}
            for gang, members in group_by_gang(pods).items():
                audited = known.get(gang)
                if audited is None or audited.pods != members:
                    audited = _Audited(members, audit_gang(places, members))
                self._known[gang] = audited
            self._pods = pods
        return {gang: row.audit for gang, row in self._known.items()}


def derive_rank_findings(
    audits: Mapping[str, GangAudit | None], now: datetime
) -> Iterator[Finding]:
    """Yield a finding for each gang that has run for `MIN_AGE` in a poor order of ranks.

    Its evidence is the better order of nodes.
    """
    for gang, audit in sorted(audits.items()):
        if audit is None or audit.is_best:
            continue
        times = [pod.bound_at for pod in audit.world.pods]
        if all(time is not None and now - time >= MIN_AGE for time in times):
            yield _build_finding(gang, audit)


def _build_finding(gang: str, audit: GangAudit) -> Finding:
    nodes = list(dict.fromkeys(pod.node for pod in audit.order))
    counts = [
        f"a {show(tier.tier)} {tier.now} times instead of {tier.fewest}"
        for tier in audit.tiers
        if tier.now != tier.fewest
    ]
    return Finding(
        kind=FindingKind.RANK_ORDER,
        device=gang,
        port=None,
        severity=Severity.INFO,
        message=(
            f"The ring over the ranks of {len(audit.world.pods)} pods leaves {', '.join(counts)}; "
            f"the ranks are from {audit.world.source}. Give the launcher the order that "
            f"`toponaut ranks {show(gang)} --kube` prints."
        ),
        ports=tuple(PortName(node, "") for node in nodes),
        impact=Impact(gangs=(gang,)),
    )
