"""`toponaut adopt`: take over HyperNodes that others wrote, under approval."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click

from generator.cli.commands.apply import hold_writes, write_plan
from generator.cli.commands.diff.witness import render_witness_rows, render_witness_text
from generator.cli.commands.hypernodes.label_adoption import adopt_labels, find_kept_names
from generator.cli.commands.plan import print_verdict, render_plan_text
from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.observation import LoadedObservation, read_observation
from generator.cli.output import list_nodes, print_document, show_count
from generator.cli.plan_input import (
    ObservedHyperNodes,
    Plan,
    add_store_reports,
    plan_observation,
    read_observed,
)
from generator.cli.source_values import parse_sources
from generator.cli.store_access import PlanStore, hold_folder, open_plan_store
from generator.ingest.sources import Sources, read_nodes
from generator.objects.inventory import list_node_labels
from generator.objects.tree_record import TreeRecord
from generator.objects.tree_spec import parse_tree_spec
from generator.objects.write_policy import parse_write_policy
from generator.observe.domain_witness import Witness, WitnessDiff, compare_witness
from generator.observe.labelled_tree import build_labelled_tree, parse_label_keys
from generator.outputs.hypernode import (
    Adoption,
    HyperNode,
    adopt_hypernodes,
    build_hypernode_tree,
    select_named,
)
from generator.reconcile.guard import HoldKind, HoldReason, hash_plan
from generator.reconcile.plan import Action, Op, render_action
from generator.store.base import StoredHyperNodes, StoredRecord
from topology.model.errors import ConfigError, ParseError
from topology.model.tree import API_VERSION


class _AdoptionPlan(NamedTuple):
    """The plan with the take-overs first, and how the old set differs from the cables."""

    plan: Plan
    adoption: Adoption
    diff: WitnessDiff
    kept: tuple[str, ...]
    """Names that a domain of the tree takes over."""
    witness: Witness


class _TakeOverStore:
    """A store in which the first write of each adopted HyperNode takes it over."""

    def __init__(self, store: PlanStore, adoption: Adoption) -> None:
        self._store = store
        self._taken = {row.name: row for row in adoption.taken}

    def hold_writes(self, namespace: str) -> AbstractContextManager[None]:
        return self._store.hold_writes(namespace)

    def read_hypernodes(self) -> StoredHyperNodes:
        return self._store.read_hypernodes()

    def put(self, hypernode: HyperNode) -> bool:
        seen = self._taken.pop(hypernode.name, None)
        if seen is None:
            return self._store.put(hypernode)
        return self._store.take_over(hypernode, seen)

    def take_over(self, hypernode: HyperNode, seen: HyperNode) -> bool:
        return self._store.take_over(hypernode, seen)

    def remove(self, name: str) -> bool:
        return self._store.remove(name)

    def approve(self, plan: str) -> object:
        return self._store.approve(plan)

    def read_record(self) -> StoredRecord:
        return self._store.read_record()

    def write_record(self, record: TreeRecord) -> object:
        return self._store.write_record(record)

    def consume_approval(self, plan: str) -> object:
        return self._store.consume_approval(plan)


def run(
    ctx: click.Context,
    /,
    output: str,
    store: Path | None,
    approve: str | None,
    namespace: str,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Run `toponaut adopt` with the values of its options."""
    names_in, labels = options.pop("names_in"), options.pop("labels")
    sources = parse_sources(options)
    if labels:
        if store or names_in:
            raise click.UsageError("--labels excludes --store and --names-in")
        adopt_labels(ctx, sources, labels, approve=approve, namespace=namespace, output=output)
    cluster = None if store else sources.cluster
    with hold_folder(store), open_plan_store(store, cluster) as opened:
        observed = read_observed(store, None, sources.cluster)
        _check_wanted(observed)
        policy = parse_write_policy(observed.fabric)
        policy = policy if approve is None else policy.with_approved_plan(approve)
        sources = add_store_reports(sources, store, observed.fabric)
        adopted = _plan_adoption(sources, observed, names_in)
        if not isinstance(adopted, _AdoptionPlan):
            nothing = "there is no HyperNode of others to take over"
            print_document([], output, text=lambda: nothing)
            exit_with_problems(ctx, adopted)
        plan = adopted.plan
        if policy.is_paused or not (
            plan.verdict.is_allowed or policy.is_approved(plan.verdict.hash)
        ):
            print_document(
                _render_document(adopted), output, text=lambda: _render_text(adopted, output)
            )
            print_verdict(plan.verdict, policy)
            exit_with_problems(ctx, plan.problems, ExitCode.CHECK_FAILED)
        target = _TakeOverStore(opened, adopted.adoption)
        with hold_writes(plan, opened, namespace):
            result = write_plan(plan, target, output, observed=observed)
    if result.error is not None:
        pending = show_count(len(result.pending), "action")
        click.echo(f"error: {result.error}; {pending} not done", err=True)
        exit_with_problems(ctx, plan.problems, ExitCode.INTERNAL)
    exit_with_problems(ctx, plan.problems)


def _check_wanted(observed: ObservedHyperNodes) -> None:
    """Refuse to take over HyperNodes that the next round of `serve` would remove.

    Raises:
        ConfigError: the Fabric object asks for no HyperNodes.
    """
    if not parse_tree_spec(observed.fabric)[0].has_hypernodes:
        raise ConfigError(
            "spec.outputs of the Fabric object has no entry of type hypernode, so HyperNodes "
            "would be removed and not taken over: add the entry first"
        )


def _plan_adoption(
    sources: Sources, observed: ObservedHyperNodes, names_in: str | None
) -> _AdoptionPlan | tuple[ParseError, ...]:
    """Return the plan that takes over all HyperNodes that can be, and repairs them.

    If there are none, returns why the others cannot be taken over.
    """
    nodes = list_node_labels(read_nodes(sources)) if sources.nodes or sources.cluster else None
    adoption = adopt_hypernodes(observed.hypernodes, nodes)
    refused = tuple(ParseError(row, source="HyperNodes") for row in adoption.problems)
    label_keys = parse_label_keys(names_in) if names_in else ()
    if not adoption.claimed:
        if sources.plane or sources.planes:
            read_observation(sources)  # refuses a plane that does not exist
        return refused
    witness = Witness.LABELS if names_in else Witness.HYPERNODES
    if names_in:
        previous = build_labelled_tree(nodes or {}, label_keys).tree
    else:
        previous = build_hypernode_tree(select_named(adoption.claimed)).tree
    read = read_observation(sources, previous=previous)
    plan = _build_plan(read, observed, adoption)
    old = previous if names_in else build_hypernode_tree(adoption.claimed).tree
    problems = tuple(dict.fromkeys((*plan.problems, *refused)))
    return _AdoptionPlan(
        plan._replace(problems=problems),
        adoption,
        compare_witness(read.observation.tree, old),
        find_kept_names(read.observation.tree, previous),
        witness,
    )


def _build_plan(read: LoadedObservation, observed: ObservedHyperNodes, adoption: Adoption) -> Plan:
    """Return the plan on the adopted set; it is always held until a person approves it."""
    claimed = {row.name: row for row in adoption.claimed}
    after = tuple(claimed.get(row.name, row) for row in observed.hypernodes)
    policy = parse_write_policy(observed.fabric)
    plan = plan_observation(read, observed._replace(hypernodes=after), policy=policy)
    actions = (*(_build_claim(row) for row in adoption.claimed), *plan.actions)
    num = show_count(len(adoption.claimed), "HyperNode")
    hold = HoldReason(HoldKind.ADOPTION, f"{num} of others would be taken over")
    counts = {**plan.verdict.counts}
    counts[Op.UPDATE] = counts.get(Op.UPDATE, 0) + len(adoption.claimed)
    verdict = replace(
        plan.verdict,
        hash=hash_plan(actions),
        counts=counts,
        hold_reasons=(hold, *plan.verdict.hold_reasons),
    )
    return plan._replace(actions=actions, verdict=verdict)


def _build_claim(hypernode: HyperNode) -> Action:
    return Action(Op.UPDATE, hypernode.name, hypernode.tier, "take over", hypernode)


def _render_document(adopted: _AdoptionPlan) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "AdoptionPlan",
        "hash": adopted.plan.verdict.hash,
        "takenOver": [row.name for row in adopted.adoption.taken],
        "namesKept": list(adopted.kept),
        "differences": render_witness_rows(adopted.diff, adopted.witness),
        "actions": [render_action(action) for action in adopted.plan.actions],
    }


def _render_text(adopted: _AdoptionPlan, output: str) -> str:
    kept = show_count(len(adopted.kept), "name")
    names = f": {list_nodes(adopted.kept, output)}" if adopted.kept else ""
    return "\n".join(
        [
            render_witness_text(adopted.diff, adopted.witness),
            f"{kept} kept{names}",
            render_plan_text(adopted.plan),
        ]
    )
