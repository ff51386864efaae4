"""Validation errors in the words that the author of a document reads."""

from __future__ import annotations

from typing import Annotated, Self

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from topology.model.validation import describe_validation


class Row(BaseModel):
    """One row of a file."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=4)] = "a"
    rate: Annotated[float, Field(gt=0)] = 1.0
    tags: Annotated[tuple[str, ...], Field(min_length=1)] = ("x",)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.name == "no":
            raise ValueError("no is no name")
        return self


class File(BaseModel):
    """A whole file."""

    rows: Annotated[tuple[Row, ...], Field(min_length=1)]


def described(document: object) -> list[str]:
    with pytest.raises(ValidationError) as raised:
        File.model_validate(document)
    return describe_validation(raised.value)


@pytest.mark.parametrize(
    ("document", "problems"),
    [
        ([], ["expected a mapping"]),
        ({}, ["rows: is missing"]),
        ({"rows": "x"}, ["rows: expected a list"]),
        ({"rows": []}, ["rows: expected at least 1 item"]),
        ({"rows": [1]}, ["rows.0: expected a mapping"]),
        ({"rows": [{"nam": "x"}]}, ["rows.0.nam: is not a known field"]),
        ({"rows": [{"tags": [1]}]}, ["rows.0.tags.0: expected a text"]),
        ({"rows": [{"tags": []}]}, ["rows.0.tags: expected at least 1 item"]),
        ({"rows": [{"rate": 0}]}, ["rows.0.rate: expected greater than 0"]),
        ({"rows": [{"name": "no"}]}, ["rows.0: no is no name"]),
        ({"rows": [{"a\n\u202e": 1}]}, [r"rows.0.a\n\u202e: is not a known field"]),
    ],
    ids=[
        "a list in place of the file",
        "no rows",
        "a text in place of rows",
        "no row",
        "a number in place of a row",
        "a misspelt field",
        "a number in place of a text, and no second fault of the list that lacks it",
        "an empty list in a row",
        "a number out of bounds",
        "a check of our own",
        "a name that would spoil a terminal",
    ],
)
def test_it_reports_each_fault_once(document: object, problems: list[str]) -> None:
    assert described(document) == problems


def test_it_counts_the_faults_that_it_does_not_list() -> None:
    problems = described({"rows": [{"b": 1}] * 7})
    assert len(problems) == 6
    assert problems[-1] == "and 2 more"
