"""Outputs rendered from the tree that was decided last."""

import json

from generator.objects.outputs import Output, OutputType
from generator.outputs.formats import LabelFamily
from generator.reconcile.rendered import (
    COMPAT_MANAGER,
    KINDS,
    NAMESPACED,
    build_removal,
    list_tier_keys,
    name_manager,
    render_outputs,
)
from topology.model.tree import DomainSpec, Unplaced, build_tree

TREE = build_tree(
    [
        DomainSpec("spine-1", 2, None),
        DomainSpec("leaf-1", 1, "spine-1", ("a", "b")),
        DomainSpec("leaf-2", 1, "spine-1", ("c",)),
    ],
    tiers=("leaf", "spine"),
    unplaced=[Unplaced("d", "no report")],
)
EVERY = tuple(Output(type=kind) for kind in KINDS)


def test_without_a_decision_nothing_is_known() -> None:
    (row, *_) = render_outputs(None, EVERY, namespace="ns")
    assert (row.sets, row.is_decided) == ((), False)


def test_every_output_has_objects_of_its_kinds_and_a_manager_of_its_own() -> None:
    managers = []
    for row in render_outputs(TREE, EVERY, namespace="ns"):
        assert row.problem == ""
        for objects in row.sets:
            managers.append((objects.manager, objects.resource))
            assert objects.resource in KINDS[row.type]
            for one in objects.objects:
                assert one.document["kind"] == objects.resource.kind
                assert one.key.startswith("ns/") is (objects.resource in NAMESPACED)
                assert json.loads(one.part)
        assert any(objects.objects for objects in row.sets)
    assert len(set(managers)) == len(managers)


def test_keys_of_other_tools_have_a_manager_of_their_own() -> None:
    output = Output(type=OutputType.LABELS, compat=(LabelFamily.TOPOGRAPH,))
    (row,) = render_outputs(TREE, [output], namespace="ns")
    own, others = row.sets
    assert (own.manager, others.manager) == (name_manager(OutputType.LABELS), COMPAT_MANAGER)
    keys = [
        {key.split("/")[0] for one in objects.objects for key in one.document["metadata"]["labels"]}
        for objects in row.sets
    ]
    assert keys == [{"topology.toponaut.io"}, {"fabric.topograph.run"}]
    assert [one.key for one in own.objects] == ["a", "b", "c", "d"]


def test_an_output_that_is_no_longer_wanted_removes_everything_of_it() -> None:
    for kind in KINDS:
        wanted = {(row.resource, row.manager) for row in build_removal(kind).sets}
        (rendered,) = render_outputs(
            TREE, [one for one in EVERY if one.type is kind], namespace="ns"
        )
        assert {(row.resource, row.manager) for row in rendered.sets} <= wanted
        assert not any(row.objects for row in build_removal(kind).sets)


def test_an_output_that_needs_another_says_which() -> None:
    kueue, grove = render_outputs(
        TREE,
        [Output(type=OutputType.KUEUE), Output(type=OutputType.GROVE)],
        namespace="ns",
    )
    assert "add an output of type labels" in kueue.problem
    assert "add an output of type kai" in grove.problem
    assert kueue.sets == grove.sets == ()


def test_outputs_name_the_keys_of_the_labels() -> None:
    labels = Output(type=OutputType.LABELS, label_prefix="fabric.example.org")
    outputs = [labels, Output(type=OutputType.KUEUE, name="gpu")]
    _, kueue = render_outputs(TREE, outputs, namespace="ns")
    (topology,) = kueue.sets[0].objects
    assert topology.key == "gpu"
    levels = [row["nodeLabel"] for row in topology.document["spec"]["levels"]]
    assert levels == [
        "fabric.example.org/spine",
        "fabric.example.org/leaf",
        "kubernetes.io/hostname",
    ]
    keys = [(row.tier, row.key) for row in list_tier_keys(TREE, outputs)]
    assert keys == [(1, "fabric.example.org/leaf"), (2, "fabric.example.org/spine")]
    assert list_tier_keys(TREE, outputs[1:]) == ()
