"""The proto files follow the conventions that other languages and tools expect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from itertools import pairwise

import pytest
from google.protobuf.descriptor import EnumDescriptor

from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import topology_pb2 as tb

FILES = (pb.DESCRIPTOR, tb.DESCRIPTOR)
TEXTS = [files("generator.rpc").joinpath(file.name).read_text() for file in FILES]
ENUMS = [enum for file in FILES for enum in file.enum_types_by_name.values()]


def screaming(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


@pytest.mark.parametrize("enum", ENUMS, ids=lambda enum: enum.name)
def test_it_prefixes_enum_values_and_gives_zero_no_meaning(enum: EnumDescriptor) -> None:
    prefix = screaming(enum.name)
    assert enum.values_by_number[0].name == f"{prefix}_UNSPECIFIED"
    assert all(value.name.startswith(f"{prefix}_") for value in enum.values)


def test_it_names_requests_and_responses_after_their_calls() -> None:
    services = [service for file in FILES for service in file.services_by_name.values()]
    assert len(services) == len(FILES)
    for service in services:
        assert service.name.endswith("Service")
        for call in service.methods:
            assert call.input_type.name == f"{call.name}Request"
            assert call.output_type.name == f"{call.name}Response"


def declarations(text: str) -> Iterator[tuple[str, str]]:
    """Yield every declaration with the line before it."""
    lines = text.splitlines()
    for above, line in pairwise(lines):
        if re.match(r"\s*(service|message|enum|rpc|oneof|[\w.<>, ]+ = \d+;)", line):
            yield above.strip(), line.strip()


@pytest.mark.parametrize("text", TEXTS, ids=[file.name for file in FILES])
def test_it_has_a_comment_on_every_declaration(text: str) -> None:
    found = list(declarations(text))
    assert len(found) > len(ENUMS)
    assert not [line for above, line in found if not above.startswith("//")]
