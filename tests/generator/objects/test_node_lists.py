"""A large list of nodes is read row by row, with the result of reading it whole."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.objects.inventory import parse_nodes
from tests.effort import examples

ROWS = st.lists(
    st.none() | st.integers() | st.text(max_size=5)
    | st.fixed_dictionaries(
        {"name": st.sampled_from(["a", "b", "c", "NO"])},
        optional={"capacity": st.dictionaries(st.text(max_size=3), st.integers() | st.text())},
    ),
    max_size=6,
)  # fmt: skip


@given(ROWS, st.sampled_from([None, 1]), st.text(alphabet=" ]},\n", max_size=3))
@settings(max_examples=examples(150))
def test_rows_are_read_as_the_whole_document_is(
    rows: list[object], indent: int | None, tail: str
) -> None:
    text = json.dumps({"nodes": rows}, indent=indent) + tail
    raw = text.encode()
    # A leading byte that JSON allows, but that hides the list, makes the parser read it whole.
    whole = parse_nodes(b'{"kind": "x", ' + raw.lstrip()[1:], source="x")
    streamed = parse_nodes(raw, source="x")
    assert streamed.nodes == whole.nodes
    assert [problem.problem for problem in streamed.problems] == [
        problem.problem for problem in whole.problems
    ]


def test_it_counts_problems_that_it_does_not_keep() -> None:
    found = parse_nodes(json.dumps({"nodes": [{"nmae": 1}] * 5000}).encode(), source="x")
    assert len(found.problems) == 1001
    assert str(found.problems[-1]) == "x: 4000 more problems with entries"


NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {}, "status": {}}
HEAD = {"apiVersion": "v1"}
FOOT = {"kind": "List", "metadata": {"resourceVersion": ""}}


@pytest.mark.parametrize(
    "document",
    [
        {**HEAD, "items": [NODE, {**NODE, "metadata": {"name": "m"}}], **FOOT},
        {**HEAD, "kind": "NodeList", "items": [NODE], "metadata": {}},
        {**HEAD, "items": [NODE, {**NODE, "kind": "Pod"}], **FOOT},
        {**HEAD, "items": [NODE, NODE, {**NODE, "metadata": {}}], **FOOT},
        {**HEAD, "items": [], **FOOT},
        {**HEAD, "items": [NODE], **FOOT, "x": 1},
        {**HEAD, "items": {}},
    ],
)
def test_a_list_of_kubectl_is_read_as_the_whole_document_is(document: dict[str, object]) -> None:
    raw = json.dumps(document, indent=4).encode()
    whole = parse_nodes(b"---\n" + raw, source="x")  # YAML's way, which is never streamed
    streamed = parse_nodes(raw, source="x")
    assert (streamed.nodes, len(streamed.problems), len(streamed.lost)) == (
        whole.nodes, len(whole.problems), len(whole.lost)
    )  # fmt: skip


def test_a_list_of_kubectl_is_never_in_memory_as_a_whole() -> None:
    images = [{"names": [f"registry/image-{number}"], "sizeBytes": number} for number in range(50)]
    items = [{**NODE, "metadata": {"name": f"n{number}"}} for number in range(300)]
    items = [{**item, "status": {"images": images}} for item in items]
    raw = json.dumps({**HEAD, "items": items, **FOOT}).encode()
    whole = _measure_peak(lambda: json.loads(raw))
    streamed = _measure_peak(lambda: parse_nodes(raw, source="x"))
    assert streamed < whole / 2


def _measure_peak(read: Callable[[], object]) -> int:
    """Return the most bytes that a call has at one time."""
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
