"""The settings of the tree in the Fabric object, and the effect of typing errors."""

from typing import Any

import pytest

from generator.objects.plane_config import PlaneChoice
from generator.objects.tree_spec import DEFAULT_TREE_SPEC, TreeSpec, parse_tree_spec
from topology.planes.policy import PlanePolicy, PortRule

STORAGE = {"name": "storage", "any": [{"switches": ["stor-*"]}]}
POLICY = PlanePolicy("storage", (PortRule(switches=("stor-*",)),))
LAST = TreeSpec(PlaneChoice((POLICY,), "storage"), ("rack", "row"), has_hypernodes=False)


def fabric(**spec: object) -> dict[str, Any]:
    return {"spec": spec}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(None, DEFAULT_TREE_SPEC, id="there is no object"),
        pytest.param(fabric(), DEFAULT_TREE_SPEC, id="it says nothing"),
        pytest.param(
            fabric(planes=[STORAGE]), TreeSpec(PlaneChoice((POLICY,))), id="it has rules for planes"
        ),
        pytest.param(
            fabric(tierNames=["rack", "row"]), TreeSpec(tier_names=("rack", "row")), id="tiers"
        ),
        pytest.param(
            fabric(outputs=[{"type": "hypernode", "plane": "storage"}]),
            TreeSpec(PlaneChoice(plane_name="storage")),
            id="it asks for another network",
        ),
        pytest.param(fabric(outputs=[]), TreeSpec(has_hypernodes=False), id="it has no output"),
    ],
)
def test_it_reads_the_settings_where(document: dict[str, Any] | None, expected: TreeSpec) -> None:
    assert parse_tree_spec(document, LAST) == (expected, ())


FIELDS = {
    "planes": "planes",
    "tierNames": "tier_names",
    "outputs": "has_hypernodes",
    "outputs.plane": "planes",
    "sweepers": "sweepers",
}
WRONG_VALUES = [
    pytest.param({"planes": [{"name": "x"}]}, "planes", id="a network without a rule"),
    pytest.param({"planes": [STORAGE, STORAGE]}, "planes", id="a network twice"),
    pytest.param(
        {"planes": [{"name": "x", "any": [{"subnets": ["?"]}]}]}, "planes", id="no subnet"
    ),
    pytest.param(
        {"planes": [{"name": "x", "any": [{"ports": ["mlx5_[0-3/1"]}]}]},
        "planes",
        id="a pattern with an open bracket",
    ),
    pytest.param(
        {"planes": [{"name": "x", "any": [{"hosts": ["rack[9-1]*"]}]}]},
        "planes",
        id="a pattern with an empty range",
    ),
    pytest.param(
        {"outputs": [{"type": "hypernode", "plane": "compue"}]},
        "outputs.plane",
        id="an unknown network",
    ),
    pytest.param({"tierNames": ["1"]}, "tierNames", id="a tier that is a number"),
    pytest.param({"tierNames": ["a", "a"]}, "tierNames", id="a tier twice"),
    pytest.param({"outputs": [{"type": "slurm"}]}, "outputs", id="an unknown output"),
    pytest.param({"outputs": "none"}, "outputs", id="text for a list"),
    pytest.param({"outputs": {}}, "outputs", id="an empty object for a list"),
    pytest.param({"sweepers": ["a", "a"]}, "sweepers", id="a sweeper twice"),
    pytest.param({"sweepers": 0}, "sweepers", id="a number for a list"),
]


@pytest.mark.parametrize(("spec", "field"), WRONG_VALUES)
def test_it_keeps_the_last_good_value_where_there_is(spec: dict[str, Any], field: str) -> None:
    found, (problem,) = parse_tree_spec(fabric(**spec), LAST)
    assert problem.problem.startswith(f"spec.{field}: ")
    kept = FIELDS[field]
    expected = {
        "planes": LAST.planes._replace(plane_name="compute"),
        "outputs.plane": LAST.planes._replace(policies=()),
    }
    assert getattr(found, kept) == expected.get(field, getattr(LAST, kept))
    assert found.unknown == ()


def test_it_names_the_unknown_plane_of_outputs_and_those_that_exist() -> None:
    found, (problem,) = parse_tree_spec(
        fabric(
            planes=[STORAGE, STORAGE | {"name": "gpu"}],
            outputs=[{"type": "labels", "plane": "gpus"}],
        )
    )
    assert "no plane is named 'gpus'; expected storage, gpu, compute, management" in str(problem)
    assert found.outputs, "what else is wanted is known"
    replaced = found.with_planes(PlaneChoice(plane_name="gpu"))
    assert (replaced.planes.plane_name, replaced.unknown) == ("gpu", ())


def test_wrong_planes_are_one_fault_also_if_an_output_names_one_of_them() -> None:
    broken = [{"name": "gpu", "any": [{"ports": ["mlx5_[0-3"]}]}]
    outputs = [{"type": "hypernode", "plane": "gpu"}]
    _, (problem,) = parse_tree_spec(fabric(planes=broken, outputs=outputs), LAST)
    assert "pattern 'mlx5_[0-3' has a [ without a ]" in str(problem)


@pytest.mark.parametrize(("spec", "field"), WRONG_VALUES)
def test_it_is_unknown_without_a_good_value(spec: dict[str, Any], field: str) -> None:
    found, (problem,) = parse_tree_spec(fabric(**spec))
    assert [setting.field for setting in found.unknown] == [field]
    assert "nothing is planned until it is corrected" in problem.problem
    again, _ = parse_tree_spec(fabric(**spec), found)
    assert again == found, "the default of an unknown field is no good value"
    mended, problems = parse_tree_spec(fabric(), again)
    assert (mended, problems) == (DEFAULT_TREE_SPEC, ())
    assert parse_tree_spec(fabric(**spec), mended)[0].unknown == ()


@pytest.mark.parametrize("spec", [5, "x", [], False])
def test_a_spec_that_is_no_object_is_unknown_as_a_whole(spec: object) -> None:
    found, (problem,) = parse_tree_spec({"spec": spec})
    assert [setting.field for setting in found.unknown] == [""]
    assert problem.problem.startswith("spec: expected an object")
    kept, _ = parse_tree_spec({"spec": spec}, LAST)
    assert kept == LAST


def test_the_planes_of_an_option_replace_unknown_ones() -> None:
    found, _ = parse_tree_spec(fabric(planes=7, tierNames=["1"]))
    option = PlaneChoice(plane_name="storage")
    replaced = found.with_planes(option)
    assert replaced.planes == option
    assert [setting.field for setting in replaced.unknown] == ["tierNames"]
