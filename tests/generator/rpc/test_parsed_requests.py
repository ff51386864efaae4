"""Cached requests equal freshly parsed requests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from generator.rpc.messages.parsed_requests import MAX_REQUESTS, RequestCache
from generator.rpc.messages.requests import decode_request, encode_request
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from tests.generator.rpc.clusters import request_for
from topology.model.errors import PlacementRequestError


def test_it_returns_the_parsers_result_for_any_name() -> None:
    parsing = RequestCache()
    for name in ("x", "y", "self"):
        request = replace(request_for(3, required="leaf"), gang=name)
        assert parsing.parse_request(encode_request(request)) == request


def test_it_names_an_unnamed_gang_as_the_parser_does() -> None:
    spec = pb.PlacementSpec(groups=[pb.Group(name="w", count=1)])
    assert RequestCache().parse_request(spec) == decode_request(spec)


def test_it_refuses_a_malformed_request_each_time() -> None:
    parsing = RequestCache()
    for _ in range(2):
        with pytest.raises(PlacementRequestError):
            parsing.parse_request(pb.PlacementSpec(gang="x"))


def test_it_refuses_a_long_name_of_a_known_shape() -> None:
    parsing = RequestCache()
    parsing.parse_request(encode_request(request_for(1)))
    with pytest.raises(PlacementRequestError, match="gang"):
        parsing.parse_request(encode_request(request_for(1, gang="x" * 20_000)))


def test_it_distinguishes_more_shapes_than_it_caches() -> None:
    parsing = RequestCache()
    for count in [*range(1, MAX_REQUESTS + 3), 1]:
        assert parsing.parse_request(encode_request(request_for(count))) == request_for(count)
