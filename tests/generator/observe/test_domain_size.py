"""A domain that no API server can store as a HyperNode is named, and nothing is planned."""

from __future__ import annotations

import json

import pytest

from generator.observe.observation import Observation
from generator.observe.plan_blockers import (
    MAX_MEMBER_BYTES,
    derive_size_findings,
    find_large_domains,
)
from generator.outputs.hypernode.forest import render_hypernodes
from generator.outputs.hypernode.model import render_manifest
from generator.reconcile.desired import plan_tree_changes
from topology.model.facts import FindingKind
from topology.model.tree import DomainSpec, TopologyTree, build_tree

ETCD_BYTES = 1_572_864


def one_leaf(num_nodes: int) -> TopologyTree:
    nodes = tuple(f"node-{number:06}" for number in range(num_nodes))
    return build_tree([DomainSpec("big", 1, None, nodes)], tiers=("leaf",))


@pytest.mark.parametrize("num_nodes", [1, 1000, 19_000])
def test_it_accepts_what_an_api_server_stores(num_nodes: int) -> None:
    tree = one_leaf(num_nodes)
    (hypernode,) = render_hypernodes(tree)
    size = len(json.dumps(render_manifest(hypernode), separators=(",", ":")))
    assert list(find_large_domains(tree)) == []
    assert size < ETCD_BYTES


def test_it_names_a_domain_that_is_too_large_and_plans_nothing() -> None:
    tree = one_leaf(25_000)
    (hypernode,) = render_hypernodes(tree)
    assert len(json.dumps(render_manifest(hypernode), separators=(",", ":"))) > MAX_MEMBER_BYTES
    large = tuple(find_large_domains(tree))
    stops = tuple(domain.problem for domain in large)
    assert "domain big has 25000 members" in stops[0]
    (finding,) = derive_size_findings(large)
    assert (finding.kind, finding.device) == (FindingKind.DOMAIN_TOO_LARGE, "big")
    assert stops[0] in finding.message
    actions, (problem,), _ = plan_tree_changes(Observation(tree, (), plan_blockers=stops), ())
    assert actions == ()
    assert "1.5 MiB" in str(problem)
