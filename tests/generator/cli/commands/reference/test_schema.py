"""`schema`: its schemas equal the committed ones, are valid, and accept real documents."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from generator.cli.schemas import SCHEMAS
from tests.generator.scenes import run
from tests.golden import Golden
from tests.repository import ROOT


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_it_equals_the_committed_schema(name: str, golden: Golden) -> None:
    ran = run("schema", name)
    assert ran.code == 0
    golden.check(ROOT / "docs" / "schema" / f"{name}.json", ran.out)


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_it_is_a_valid_schema(name: str) -> None:
    schema = json.loads((ROOT / "docs" / "schema" / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", ["gang.yaml", "too-large.yaml"])
def test_it_accepts_the_requests_of_the_demo(name: str) -> None:
    schema = json.loads(run("schema", "request").out)
    jsonschema.validate(yaml.safe_load((ROOT / "fixtures" / "demo" / name).read_text()), schema)


@pytest.mark.parametrize("medium", ["infiniband", "ethernet"])
def test_it_accepts_every_report_of_a_simulated_fabric(tmp_path: Path, medium: str) -> None:
    made = ("simulate", "fabric", "--kind", "dual-homed", "--hosts", 8, "--radix", 8)
    assert run(*made, "--medium", medium, "--out", tmp_path / "fabric").code == 0
    validator = jsonschema.Draft202012Validator(json.loads(run("schema", "report").out))
    files = sorted((tmp_path / "fabric" / "reports").iterdir())
    assert files
    for file in files:
        validator.validate(json.loads(file.read_text()))


@pytest.mark.parametrize(
    "wrong", [{"apiVersion": "toponaut.io/v2"}, {"spec": {"ports": "none"}}, {"extra": 1}]
)
def test_it_refuses_reports_that_the_parser_refuses(wrong: dict[str, object]) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(run("schema", "report").out))
    good = {
        "apiVersion": "toponaut.io/v1alpha1",
        "kind": "NeighborReport",
        "metadata": {"name": "node-1"},
        "spec": {"device": {"kind": "host", "name": "node-1"}},
    }
    assert validator.is_valid(good)
    assert not validator.is_valid(good | wrong)


def test_it_refuses_the_name_of_an_unknown_schema() -> None:
    ran = run("schema", "pod")
    assert (ran.code, ran.out) == (2, "")
    assert "report" in ran.err
