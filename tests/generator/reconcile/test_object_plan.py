"""Plans of outputs, carried out on a model of objects with owners."""

import json
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from generator.kube.cache import StoredObject
from generator.kube.ownership import render_part
from generator.kube.resources import CONFIG_MAPS, NODES, Resource
from generator.reconcile.object_plan import KindPlan, changes_label, plan_objects
from generator.reconcile.rendered import DesiredObject, ObjectSet, OwnedParts
from tests.effort import examples

OURS, THEIRS = "toponaut-labels", "somebody"
NAMES = st.sampled_from([f"node-{at}" for at in range(6)])
LABELS = st.dictionaries(st.sampled_from(["t/leaf", "t/spine"]), st.sampled_from("ab"), min_size=1)
PARTS = st.fixed_dictionaries({}, optional={OURS: LABELS, THEIRS: LABELS})
CLUSTERS = st.dictionaries(NAMES, PARTS)


def desired(labels: Mapping[str, Mapping[str, str]], resource: Resource) -> ObjectSet:
    rows = []
    for name, values in labels.items():
        document = {"kind": "Node", "metadata": {"name": name, "labels": dict(values)}}
        rows.append(DesiredObject(name, document, render_part(document)))
    return ObjectSet(resource, OURS, tuple(rows))


def observed(
    cluster: Mapping[str, Mapping[str, Mapping[str, str]]],
) -> dict[str, StoredObject[OwnedParts]]:
    return {
        name: StoredObject(
            name,
            {
                manager: render_part({"metadata": {"labels": dict(labels)}})
                for manager, labels in parts.items()
            },
        )
        for name, parts in cluster.items()
    }


def carry_out(
    plan: KindPlan, before: Mapping[str, StoredObject[OwnedParts]], *, of_nodes: bool
) -> dict[str, StoredObject[OwnedParts]]:
    """Return the objects after every write of a plan, as a server would have them."""
    after = dict(before)
    for action in plan.actions:
        if action.desired is None and not of_nodes:
            del after[action.key]
            continue
        seen = after.get(action.key, StoredObject(action.key, {}))
        parts = {name: part for name, part in seen.value.items() if name != OURS}
        if action.desired is not None:
            parts[OURS] = action.desired.part
        after[action.key] = seen._replace(value=parts)
    return after


@settings(max_examples=examples(300), deadline=None)
@given(wanted=st.dictionaries(NAMES, LABELS), cluster=CLUSTERS, busy=st.frozensets(NAMES))
def test_a_plan_for_nodes_ends_and_touches_only_what_is_ours(
    wanted: dict[str, dict[str, str]],
    cluster: dict[str, dict[str, dict[str, str]]],
    busy: frozenset[str],
) -> None:
    before = observed(cluster)
    plan = plan_objects(desired(wanted, NODES), before, busy=busy)
    after = carry_out(plan, before, of_nodes=True)
    assert after.keys() == before.keys(), "no node is made or removed"
    again = plan_objects(desired(wanted, NODES), after, busy=busy)
    assert again.actions == (), "a second plan writes nothing"
    for name, seen in after.items():
        assert seen.value.get(THEIRS) == before[name].value.get(THEIRS)
        labels = labels_of(seen)
        if name in plan.deferred:
            assert labels == labels_of(before[name])
            assert any(wanted[name].get(key, value) != value for key, value in labels.items())
        else:
            assert labels == wanted.get(name, {})
    num_in_cluster = len(wanted.keys() & cluster.keys())
    assert plan.num_current + len(plan.deferred) <= num_in_cluster


@settings(max_examples=examples(300), deadline=None)
@given(wanted=st.dictionaries(NAMES, LABELS), cluster=CLUSTERS)
def test_a_plan_for_objects_ends_and_leaves_foreign_ones_alone(
    wanted: dict[str, dict[str, str]], cluster: dict[str, dict[str, dict[str, str]]]
) -> None:
    before = observed(cluster)
    plan = plan_objects(desired(wanted, CONFIG_MAPS), before)
    after = carry_out(plan, before, of_nodes=False)
    foreign = {name for name, seen in before.items() if OURS not in seen.value}
    for name in foreign:
        assert after[name] == before[name]
    assert {*plan.taken} == foreign & wanted.keys()
    ours = {name: labels_of(seen) for name, seen in after.items() if OURS in seen.value}
    assert ours == {name: labels for name, labels in wanted.items() if name not in foreign}
    again = plan_objects(desired(wanted, CONFIG_MAPS), after)
    assert (again.actions, again.taken) == ((), plan.taken)


def labels_of(seen: StoredObject[OwnedParts]) -> dict[str, str]:
    part = json.loads(seen.value.get(OURS, "{}"))
    labels: dict[str, str] = part.get("metadata", {}).get("labels", {})
    return labels


def test_a_new_key_is_no_changed_label() -> None:
    one, two = (
        render_part({"metadata": {"labels": labels}})
        for labels in ({"a": "x"}, {"a": "x", "b": "y"})
    )
    assert not changes_label(one, two)
    assert changes_label(two, one.replace("x", "z"))
