"""The proto file keeps the conventions that other languages and tools count on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from itertools import pairwise

import pytest
from google.protobuf.descriptor import EnumDescriptor

from generator.rpc.toponaut.v1 import placement_pb2 as pb

TEXT = files("generator.rpc").joinpath("toponaut/v1/placement.proto").read_text()
ENUMS = list(pb.DESCRIPTOR.enum_types_by_name.values())


def screaming(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


@pytest.mark.parametrize("enum", ENUMS, ids=lambda enum: enum.name)
def test_it_prefixes_enum_values_and_gives_zero_no_meaning(enum: EnumDescriptor) -> None:
    prefix = screaming(enum.name)
    assert enum.values_by_number[0].name == f"{prefix}_UNSPECIFIED"
    assert all(value.name.startswith(f"{prefix}_") for value in enum.values)


def test_it_names_requests_and_responses_after_their_calls() -> None:
    services = pb.DESCRIPTOR.services_by_name.values()
    assert services
    for service in services:
        assert service.name.endswith("Service")
        for call in service.methods:
            assert call.input_type.name == f"{call.name}Request"
            assert call.output_type.name == f"{call.name}Response"


def declarations() -> Iterator[tuple[str, str]]:
    """Yield every declaration with the line above it."""
    lines = TEXT.splitlines()
    for above, line in pairwise(lines):
        if re.match(r"\s*(service|message|enum|rpc|oneof|[\w.<>, ]+ = \d+;)", line):
            yield above.strip(), line.strip()


def test_it_says_what_everything_means() -> None:
    found = list(declarations())
    assert len(found) > len(ENUMS)
    assert not [line for above, line in found if not above.startswith("//")]
