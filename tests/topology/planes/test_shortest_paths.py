"""All shortest ways between two switches, compared with every way that there is."""

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from topology.planes.cables import Edge, EdgeRows
from topology.planes.shortest_paths import find_shortest_paths

NUM = 7
CABLES = st.lists(st.tuples(st.integers(0, NUM - 1), st.integers(0, NUM - 1)), max_size=12)


def list_ways(
    edges: list[Edge], ways: list[list[Edge]], stop: int, at: int
) -> Iterator[list[Edge]]:
    """Yield every way without a loop from a switch, as its cables."""
    visited = {end for edge in ways[0] for end in edge[:2]} | {at}
    if at == stop:
        yield ways[0]
        return
    for edge in edges:
        if at in edge[:2]:
            other = edge.b if edge.a == at else edge.a
            if other not in visited:
                yield from list_ways(edges, [[*ways[0], edge]], stop, other)


@given(CABLES, st.integers(0, NUM - 1), st.integers(0, NUM - 1))
@settings(max_examples=examples(300))
def test_they_are_the_shortest_of_all_ways(
    cables: list[tuple[int, int]], start: int, stop: int
) -> None:
    edges = [Edge(a, b, 2 * port, 2 * port + 1) for port, (a, b) in enumerate(cables) if a != b]
    ways = list(list_ways(edges, [[]], stop, start))
    found = find_shortest_paths(EdgeRows.of(edges), NUM, start, stop)
    assert (found is None) == (not ways)
    if found is None:
        return
    length = min(map(len, ways))
    shortest = [way for way in ways if len(way) == length]
    assert set(found.edges) == {edge for way in shortest for edge in way}
    assert len(found.stages) == length + 1
    assert {switch for stage in found.stages for switch in stage} == (
        {end for way in shortest for edge in way for end in edge[:2]} | {start, stop}
    )
    assert (found.stages[0], found.stages[-1]) == ((start,), (stop,))
