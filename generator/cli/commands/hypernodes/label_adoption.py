"""`toponaut adopt --labels`: take over labels of nodes that others wrote, under approval."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, NoReturn

import click

from generator.cli.commands.apply import GOOD_STATES, hold_writes, write_plan
from generator.cli.commands.diff.witness import render_witness_rows, render_witness_text
from generator.cli.commands.plan import print_verdict, publish, render_plan_text
from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.observation import read_observation
from generator.cli.output import list_nodes, print_document, render_table, show_count
from generator.cli.plan_input import (
    ObservedHyperNodes,
    Plan,
    add_store_reports,
    plan_observation,
    read_observed,
)
from generator.cli.store_access import open_plan_store, open_publisher
from generator.ingest.sources import Sources
from generator.kube.access import ClusterAccess
from generator.kube.resources import NODES
from generator.objects.outputs import OutputType
from generator.objects.write_policy import parse_write_policy
from generator.observe.domain_witness import Witness, WitnessDiff, compare_witness
from generator.observe.labelled_tree import build_labelled_tree, parse_label_keys
from generator.reconcile.guard import HoldKind, HoldReason
from generator.reconcile.object_plan import (
    LabelTakeover,
    SeenNode,
    list_written_keys,
    parse_seen_node,
    plan_takeover,
)
from generator.reconcile.outputs import PublishRequest
from generator.reconcile.plan import render_action
from generator.reconcile.rendered import RenderedOutput, render_outputs
from topology.model.errors import ConfigError, ParseError, list_some, show
from topology.model.tree import API_VERSION, TopologyTree

_HASH_DIGITS: Final = 16
_MAX_SHOWN: Final = 8


class LabelAdoption(NamedTuple):
    """The plan to take over labels, and how they differ from the cables."""

    plan: Plan
    request: PublishRequest
    labels: LabelTakeover
    diff: WitnessDiff
    kept: tuple[str, ...]
    """Names that a domain of the tree takes over from the labels."""


def adopt_labels(
    ctx: click.Context,
    sources: Sources,
    keys: str,
    *,
    approve: str | None,
    namespace: str,
    output: str,
) -> NoReturn:
    """Take over the labels with these keys, or print the plan that needs an approval.

    Raises:
        click.UsageError: no cluster is given.
        ConfigError: no output writes one of the keys.
        KubeError: the cluster cannot be read.
    """
    with open_plan_store(None, sources.cluster) as opened:
        observed = read_observed(None, None, sources.cluster)
        policy = parse_write_policy(observed.fabric)
        policy = policy if approve is None else policy.with_approved_plan(approve)
        sources = add_store_reports(sources, None, observed.fabric)
        adoption = _plan_adoption(sources, observed, parse_label_keys(keys))
        plan, labels = adoption.plan, adoption.labels
        if not (labels.takeover.ready or labels.takeover.waiting):
            nothing = "there is no label of others to take over"
            print_document([], output, text=lambda: nothing)
            exit_with_problems(ctx, plan.problems)
        if policy.is_paused or not policy.is_approved(plan.verdict.hash):
            print_document(
                _render_document(adoption), output, text=lambda: _render_text(adoption, output)
            )
            print_verdict(plan.verdict, policy)
            exit_with_problems(ctx, plan.problems, ExitCode.CHECK_FAILED)
        with hold_writes(plan, opened, namespace):
            result = write_plan(plan, opened, output, observed=observed)
        if result.error is None and not plan.actions:
            opened.consume_approval(plan.verdict.hash)
    if result.error is not None:
        click.echo(f"error: {result.error}; no label was taken over", err=True)
        exit_with_problems(ctx, plan.problems, ExitCode.INTERNAL)
    request = adoption.request._replace(is_writing=True)
    with open_publisher(None, sources.cluster, namespace=namespace) as publisher:
        published = publish(publisher, request)
    is_refused = any(row.state not in GOOD_STATES for row in published.rows)
    exit_with_problems(ctx, plan.problems, ExitCode.INTERNAL if is_refused else ExitCode.OK)


def _plan_adoption(
    sources: Sources, observed: ObservedHyperNodes, keys: Sequence[str]
) -> LabelAdoption:
    """Return the plan whose domains have the names that the labels give them.

    It is always held until a person approves it.
    """
    nodes = _read_nodes(sources.cluster)
    labelled = build_labelled_tree({name: row.labels for name, row in nodes.items()}, keys)
    read = read_observation(sources, previous=labelled.tree)
    policy = parse_write_policy(observed.fabric)
    first = plan_observation(read, observed, policy=policy)
    # With the approval of the whole, the outputs show the new tree.
    approved = policy.with_approved_plan(first.verdict.hash)
    plan = plan_observation(read, observed, policy=approved)
    request = _require_request(plan)
    labels = _find_labels(request, nodes, labelled.keys[::-1])
    request = request._replace(takeover=labels.takeover)
    problems = (*plan.problems, *(ParseError(row, source="labels") for row in labelled.problems))
    problems += _find_blocked(labels)
    num = len({row.node for row in (*labels.takeover.ready, *labels.takeover.waiting)})
    hold = HoldReason(
        HoldKind.ADOPTION, f"labels of others on {show_count(num, 'node')} would be taken over"
    )
    verdict = replace(
        plan.verdict,
        hash=_hash_adoption(plan, labels),
        hold_reasons=(hold, *plan.verdict.hold_reasons),
    )
    return LabelAdoption(
        plan._replace(problems=tuple(dict.fromkeys(problems)), verdict=verdict),
        request,
        labels,
        compare_witness(read.observation.tree, labelled.tree),
        find_kept_names(read.observation.tree, labelled.tree),
    )


def _read_nodes(cluster: ClusterAccess | None) -> Mapping[str, SeenNode]:
    """Return the nodes by name.

    Raises:
        click.UsageError: no cluster is given.
        KubeError: the nodes cannot be listed.
    """
    from generator.store.cluster import open_cluster  # noqa: PLC0415 - loads the Kubernetes client

    if cluster is None:
        raise click.UsageError("--labels takes over labels of the nodes of a cluster: give --kube")
    with open_cluster(cluster, os.environ) as store:
        return {row.name: row for row in store.read_objects(NODES, parse_seen_node).values}


def _require_request(plan: Plan) -> PublishRequest:
    """Return what the outputs should be.

    Raises:
        ConfigError: it is unknown which outputs are wanted, or no tree is decided.
    """
    if plan.outputs is None or plan.outputs.tree is None:
        raise ConfigError("the outputs in the Fabric object are unknown, or there is no tree")
    return plan.outputs


def _find_labels(
    request: PublishRequest, nodes: Mapping[str, SeenNode], keys: Sequence[str]
) -> LabelTakeover:
    """Return the labels to take over.

    Raises:
        ConfigError: no output writes one of the keys, so it would have no value.
    """
    rendered = next(
        (
            row
            for row in render_outputs(request.tree, request.outputs, namespace="")
            if row.type is OutputType.LABELS
        ),
        RenderedOutput(OutputType.LABELS, problem="spec.outputs has no entry of type labels"),
    )
    if rendered.problem and not rendered.sets:
        raise ConfigError(rendered.problem)
    written = list_written_keys(rendered)
    present = [key for key in keys if any(key in row.labels for row in nodes.values())]
    unwritten = [key for key in present if key not in written]
    if unwritten:
        raise ConfigError(
            f"no output writes {list_some(map(show, unwritten), _MAX_SHOWN)}: the keys are "
            f"{list_some(map(show, written), _MAX_SHOWN)}. Set labelPrefix and compat of the "
            "output labels, and tierNames"
        )
    return plan_takeover(rendered, nodes, keys, busy=request.busy)


def _find_blocked(labels: LabelTakeover) -> tuple[ParseError, ...]:
    if not labels.blocked:
        return ()
    shown = list_some(map(show, labels.blocked), _MAX_SHOWN)
    text = f"stay as they are, because they have further keys of the output labels: {shown}"
    return (ParseError(f"{text}; name all of these keys", source="nodes"),)


def _hash_adoption(plan: Plan, labels: LabelTakeover) -> str:
    """Return 16 hex digits that identify the plan and every label that is taken over."""
    owners = sorted((*labels.takeover.ready, *labels.takeover.waiting))
    text = json.dumps([plan.verdict.hash, labels.labels, owners])
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]


def find_kept_names(tree: TopologyTree, previous: TopologyTree) -> tuple[str, ...]:
    """Return the names of domains that both trees have."""
    before = {domain.name for domain in previous.domains}
    return tuple(domain.name for domain in tree.domains if domain.name in before)


def _render_document(adoption: LabelAdoption) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "AdoptionPlan",
        "hash": adoption.plan.verdict.hash,
        "namesKept": list(adoption.kept),
        "differences": render_witness_rows(adoption.diff, Witness.LABELS),
        "actions": [render_action(action) for action in adoption.plan.actions],
        "labels": [row._asdict() for row in adoption.labels.labels],
        "waiting": sorted({row.node for row in adoption.labels.takeover.waiting}),
    }


def _render_text(adoption: LabelAdoption, output: str) -> str:
    kept = show_count(len(adoption.kept), "name")
    names = f": {list_nodes(adoption.kept, output)}" if adoption.kept else ""
    return "\n".join(
        [
            render_witness_text(adoption.diff, Witness.LABELS),
            f"{kept} kept{names}",
            render_plan_text(adoption.plan),
            *_render_labels(adoption.labels),
        ]
    )


def _render_labels(labels: LabelTakeover) -> list[str]:
    """Return a row for each key, and the nodes that wait."""
    stay = Counter(row.key for row in labels.labels if row.before == row.after)
    change = Counter(row.key for row in labels.labels if row.before != row.after)
    keys = sorted({row.key for row in labels.labels})
    rows = [(show(key), str(stay[key]), str(change[key])) for key in keys]
    lines = [render_table(("LABEL", "SAME VALUE", "NEW VALUE"), rows)] if rows else []
    waiting = sorted({row.node for row in labels.takeover.waiting})
    if waiting:
        shown = list_some(map(show, waiting), _MAX_SHOWN)
        lines.append(f"labels wait until the gangs on {shown} have ended; then run this again")
    return lines
