"""`toponaut adopt`: take over HyperNodes, or labels of nodes, that others wrote, under approval."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from generator.cli import options
from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.option_types import OutputFolder
from generator.cli.options import InputOptions
from generator.cli.output import Table, list_nodes, print_document, show_count
from generator.kube.access import ClusterAccess
from generator.kube.resources import NODES
from generator.observe.domain_witness import Witness, WitnessDiff, compare_witness
from generator.outputs.hypernode.adoption import Adoption, adopt_hypernodes, select_named
from generator.outputs.hypernode.forest import build_hypernode_tree
from topology.model.errors import ConfigError, ParseError, list_some, show
from topology.model.tree import API_VERSION, TopologyTree

if TYPE_CHECKING:
    from generator.cli.observation import LoadedObservation
    from generator.cli.plans import ObservedHyperNodes, Plan
    from generator.ingest.sources import Sources
    from generator.reconcile.object_plan import LabelTakeover, SeenNode
    from generator.reconcile.outputs import PublishRequest

_HASH_DIGITS: Final = 16
_MAX_SHOWN: Final = 8


@options.command(
    "adopt",
    examples=(
        "toponaut adopt --store store --reports fabric/reports --nodes fabric/nodes.yaml",
        "toponaut adopt --kube",
    ),
)
def command(
    *,
    sources: InputOptions,
    store: Path | None = options.option(
        "Folder whose hypernodes/ are taken over; neighborreports/ is read if no source is "
        "given. Without --store, the cluster of --kube.",
        type=OutputFolder(),
    ),
    names_in: str | None = options.option(
        "Keep the names in these labels of the nodes (keys, coarsest first, or a preset of "
        "--node-labels) instead of the names of the HyperNodes.",
        metavar="KEYS",
    ),
    labels: str | None = options.option(
        "Take over these labels of the nodes of a cluster instead of HyperNodes (keys, coarsest "
        "first, or a preset of --node-labels), with their values as the names of domains.",
        metavar="KEYS",
    ),
    namespace: str = options.NAMESPACE,
    approve: str | None = options.option("Carry out the plan with this hash.", metavar="HASH"),
    output: str = options.OUTPUT,
) -> None:
    """Take over the HyperNodes, or the labels of nodes, that people or other tools wrote.

    Prints how they differ from the cables, and the plan: each one gets Toponaut's label, and its
    patterns and labels become lists of nodes; then the plan of `toponaut apply` follows. A domain
    keeps the name of the HyperNode that has most of its nodes. Nothing is written, and the exit
    code is 5, until you approve the hash of the plan here or with `toponaut approve`. The set of
    HyperNodes is valid after every write.

    With --labels, Toponaut becomes the owner of the labels that its output `labels` writes. A node
    gets its new values in one write, and none while a gang runs on it.
    """
    from generator.cli import plans
    from generator.cli.observation import parse_sources
    from generator.reconcile.decision import decide

    given = parse_sources(sources)
    if labels and (store or names_in):
        raise click.UsageError("--labels excludes --store and --names-in")
    if labels and given.cluster is None:
        raise click.UsageError("--labels takes over labels of the nodes of a cluster: give --kube")
    cluster = None if store else given.cluster
    with plans.hold_folder(store), plans.open_plan_store(store, cluster) as opened:
        observed = plans.read_observed(store, None, given.cluster)
        given = plans.add_store_reports(given, store, observed.fabric)
        adopted = (
            _plan_labels(given, observed, labels, approve or "")
            if labels
            else _plan_hypernodes(given, observed, names_in, approve or "")
        )
        if not isinstance(adopted, _AdoptionPlan):
            _print_nothing("label" if labels else "HyperNode", output)
            exit_with_problems(adopted)
        plan = adopted.plan
        if not (adopted.is_approved and plan.state.is_writing):
            print_document(
                _render_document(adopted), output, text=lambda: _list_parts(adopted, output)
            )
            plans.print_verdict(plan)
            exit_with_problems(plan.problems, ExitCode.CHECK_FAILED)
        decision = decide(plan.state)
        if labels:  # the approval covers the labels too, so it is no approval of the plan alone
            decision = decision._replace(approval=plan.verdict.hash)
        is_good = plans.write_plan(
            decision,
            adopted.request,
            plans.WritePlace(opened, store, cluster, namespace),
            output,
            observed=observed,
            left="no label was taken over" if labels else "",
        )
    exit_with_problems(plan.problems, None if is_good else ExitCode.INTERNAL)


def _print_nothing(what: str, output: str) -> None:
    print_document([], output, text=lambda: f"there is no {what} of others to take over")


class _AdoptionPlan(NamedTuple):
    """The plan to take over HyperNodes or labels, and how the cables differ from them."""

    plan: Plan
    diff: WitnessDiff
    witness: Witness
    kept: tuple[str, ...]
    """Names that a domain of the tree takes over."""
    is_approved: bool
    """Whether a person has approved the plan."""
    hypernodes: Adoption = Adoption()
    labels: LabelTakeover | None = None
    request: PublishRequest | None = None
    """The outputs as they should be once labels are taken over."""


def _plan_hypernodes(
    sources: Sources, observed: ObservedHyperNodes, names_in: str | None, approved: str
) -> _AdoptionPlan | tuple[ParseError, ...]:
    """Return the plan that takes over all HyperNodes that can be, and repairs them.

    If there are none, returns why the others cannot be taken over.

    Raises:
        ConfigError: the Fabric object asks for no HyperNodes: `serve` would remove them.
    """
    from generator.cli.observation import read_observation
    from generator.ingest.sources import read_nodes
    from generator.objects.tree_spec import parse_tree_spec
    from generator.observe.labelled_tree import build_labelled_tree, parse_label_keys

    if not parse_tree_spec(observed.fabric)[0].has_hypernodes:
        raise ConfigError(
            "spec.outputs of the Fabric object has no entry of type hypernode, so HyperNodes "
            "would be removed and not taken over: add the entry first"
        )
    nodes = read_nodes(sources).labels_by_node if sources.nodes or sources.cluster else None
    adoption = adopt_hypernodes(observed.hypernodes, nodes)
    label_keys = parse_label_keys(names_in) if names_in else ()
    refused = tuple(ParseError(row, source="HyperNodes") for row in adoption.problems)
    if not adoption.claimed:
        if sources.plane or sources.planes:
            read_observation(sources)  # refuses a plane that does not exist
        return refused
    if names_in:
        old = previous = build_labelled_tree(nodes or {}, label_keys).tree
    else:
        old = build_hypernode_tree(adoption.claimed).tree
        previous = build_hypernode_tree(select_named(adoption.claimed)).tree
    read = read_observation(sources, previous=previous)
    plan = _build_plan(read, observed, adoption, approved)
    return _AdoptionPlan(
        plan._replace(problems=tuple(dict.fromkeys((*plan.problems, *refused)))),
        compare_witness(read.observation.tree, old),
        Witness.LABELS if names_in else Witness.HYPERNODES,
        _find_kept_names(read.observation.tree, previous),
        plan.is_approved,
        adoption,
    )


def _build_plan(
    read: LoadedObservation, observed: ObservedHyperNodes, adoption: Adoption, approved: str
) -> Plan:
    """Return the plan on the adopted set; it is always held until a person approves it."""
    from generator.cli.plans import plan_observation
    from generator.reconcile.guard import HoldKind, HoldReason
    from generator.reconcile.hypernode_plan import Action, Op

    claimed = {row.name: row for row in adoption.claimed}
    pairs = zip(adoption.claimed, adoption.taken, strict=True)
    after = tuple(claimed.get(row.name, row) for row in observed.hypernodes)
    num = show_count(len(adoption.claimed), "HyperNode")
    return plan_observation(
        read,
        observed._replace(hypernodes=after),
        approved=approved,
        claims=tuple(
            Action(Op.UPDATE, row.name, row.tier, "take over", row, taken) for row, taken in pairs
        ),
        holds=(HoldReason(HoldKind.ADOPTION, f"{num} of others would be taken over"),),
    )


def _plan_labels(
    sources: Sources, observed: ObservedHyperNodes, names: str, approved: str
) -> _AdoptionPlan | tuple[ParseError, ...]:
    """Return the plan whose domains have the names that the labels give them.

    It is always held until a person approves it. If there is no label to take over, returns the
    input that was skipped.

    Raises:
        ConfigError: no output writes one of the keys, or it is unknown which outputs are wanted.
    """
    from generator.cli.observation import read_observation
    from generator.cli.plans import plan_observation
    from generator.observe.labelled_tree import build_labelled_tree, parse_label_keys
    from generator.reconcile.guard import HoldKind, HoldReason

    keys = parse_label_keys(names)
    nodes = _read_nodes(sources.cluster or ClusterAccess())
    labelled = build_labelled_tree({name: row.labels for name, row in nodes.items()}, keys)
    read = read_observation(sources, previous=labelled.tree)
    first = plan_observation(read, observed, approved=approved)
    # With the approval of the whole, the outputs show the new tree.
    plan = plan_observation(read, observed, approved=first.verdict.hash)
    request = plan.outputs
    if request is None or request.tree is None:
        raise ConfigError("the outputs in the Fabric object are unknown, or there is no tree")
    labels = _find_labels(request, nodes, labelled.keys[::-1])
    problems = (*plan.problems, *(ParseError(row, source="labels") for row in labelled.problems))
    problems = tuple(dict.fromkeys((*problems, *_find_blocked(labels))))
    takeover = labels.takeover
    if not (takeover.ready or takeover.waiting):
        return problems
    num = len({row.node for row in (*takeover.ready, *takeover.waiting)})
    hold = HoldReason(
        HoldKind.ADOPTION, f"labels of others on {show_count(num, 'node')} would be taken over"
    )
    verdict = replace(
        plan.verdict,
        hash=_hash_adoption(plan, labels),
        hold_reasons=(hold, *plan.verdict.hold_reasons),
    )
    policy = plan.state.policy
    state = plan.state._replace(policy=policy._replace(approved_plan=""))
    return _AdoptionPlan(
        plan._replace(state=state, problems=problems, verdict=verdict),
        compare_witness(read.observation.tree, labelled.tree),
        Witness.LABELS,
        _find_kept_names(read.observation.tree, labelled.tree),
        verdict.hash in (approved, policy.approved_plan),
        labels=labels,
        request=request._replace(takeover=takeover),
    )


def _read_nodes(cluster: ClusterAccess) -> Mapping[str, SeenNode]:
    from generator.reconcile.object_plan import parse_seen_node
    from generator.store.cluster_store import open_cluster
    from generator.store.kinds import Kind

    with open_cluster(cluster, os.environ) as store:
        return {row.name: row for row in store.objects.read(Kind(NODES, parse_seen_node)).values}


def _find_labels(
    request: PublishRequest, nodes: Mapping[str, SeenNode], keys: Sequence[str]
) -> LabelTakeover:
    """Return the labels to take over.

    Raises:
        ConfigError: no output writes one of the keys, so it would have no value.
    """
    from generator.objects.outputs import OutputType
    from generator.reconcile.object_plan import list_written_keys, plan_takeover
    from generator.reconcile.rendered import RenderedOutput, render_outputs

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


def _find_kept_names(tree: TopologyTree, previous: TopologyTree) -> tuple[str, ...]:
    """Return the names of domains that both trees have."""
    before = {domain.name for domain in previous.domains}
    return tuple(domain.name for domain in tree.domains if domain.name in before)


def _render_document(adopted: _AdoptionPlan) -> dict[str, Any]:
    from generator.cli.witnesses import render_witness_rows
    from generator.reconcile.hypernode_plan import render_action

    taken, labels = [row.name for row in adopted.hypernodes.taken], adopted.labels
    document = {
        "apiVersion": API_VERSION,
        "kind": "AdoptionPlan",
        "hash": adopted.plan.verdict.hash,
        **({"takenOver": taken} if labels is None else {}),
        "namesKept": list(adopted.kept),
        "differences": render_witness_rows(adopted.diff, adopted.witness),
        "actions": [render_action(action) for action in adopted.plan.actions],
    }
    if labels is not None:
        document["labels"] = [row._asdict() for row in labels.labels]
        document["waiting"] = sorted({row.node for row in labels.takeover.waiting})
    return document


def _list_parts(adopted: _AdoptionPlan, output: str) -> Iterator[str | Table]:
    from generator.cli.plans import build_plan_table
    from generator.cli.witnesses import build_witness_table

    names = f": {list_nodes(adopted.kept, output)}" if adopted.kept else ""
    yield build_witness_table(adopted.diff, adopted.witness)
    yield f"{show_count(len(adopted.kept), 'name')} kept{names}"
    yield build_plan_table(adopted.plan.actions)
    if adopted.labels:
        yield from _list_label_parts(adopted.labels)


def _list_label_parts(labels: LabelTakeover) -> Iterator[str | Table]:
    """Yield a row for each key, and the nodes that wait."""
    stay = Counter(row.key for row in labels.labels if row.before == row.after)
    change = Counter(row.key for row in labels.labels if row.before != row.after)
    keys = sorted({row.key for row in labels.labels})
    rows = [(show(key), str(stay[key]), str(change[key])) for key in keys]
    if rows:
        yield Table(("label", "same value", "new value"), rows)
    waiting = sorted({row.node for row in labels.takeover.waiting})
    if waiting:
        shown = list_some(map(show, waiting), _MAX_SHOWN)
        yield f"labels wait until the gangs on {shown} have ended; then run this again"
