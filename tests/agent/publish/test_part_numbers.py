"""The numbers of sweep parts: a reader always finds a whole sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from agent.publish.part_numbers import find_outdated_parts, number_parts
from topology.model.errors import InvariantError, ReportError
from topology.reports.neighbor_report import NeighborReport, ReportMetadata, ReportSpec, SweepPart
from topology.reports.sweep_parts import split_sweep, unpack_sweep

Stored = dict[int, SweepPart | None]


def sweep(text: str, of: int, subnet: str = "a") -> list[NeighborReport]:
    """Return a sweep in so many parts."""
    (whole,) = split_sweep(text, node="n", subnet=subnet)
    assert whole.spec.sweep is not None
    packed = whole.spec.sweep.facts
    size = 4 * (len(packed) // 4 // of)
    cuts = [size * part for part in range(of)] + [len(packed)]
    return [
        structs.replace(
            whole,
            spec=ReportSpec(
                sweep=structs.replace(whole.spec.sweep, part=part, of=of, facts=packed[start:stop])
            ),
        )
        for part, (start, stop) in enumerate(pairwise(cuts))
    ]


def parts_of(reports: Sequence[NeighborReport]) -> list[SweepPart]:
    return [one.spec.sweep for one in reports if one.spec.sweep is not None]


def numbers(reports: Sequence[NeighborReport]) -> list[int]:
    return [int(one.metadata.name.removeprefix("n.sweep.")) for one in reports]


def stored(reports: Sequence[NeighborReport], first: int = 0) -> Stored:
    return dict(enumerate(parts_of(reports), first))


@pytest.mark.parametrize(
    ("new", "existing", "found"),
    [
        pytest.param(sweep("x", 3), {}, [0, 1, 2], id="from 0 in an empty store"),
        pytest.param(sweep("x", 1), stored(sweep("y", 1), 4), [4], id="one part in place of one"),
        pytest.param(sweep("x", 2), stored(sweep("x", 2), 5), [5, 6], id="the same in its place"),
        pytest.param(sweep("x", 2), stored(sweep("y", 2)), [2, 3], id="others beside the old"),
        pytest.param(
            sweep("x", 1), stored(sweep("y", 2), 1), [0], id="the first free one"
        ),
        pytest.param(
            sweep("x", 1), stored(sweep("x", 1, subnet="b")), [1], id="not those of a subnet else"
        ),
        pytest.param(sweep("x", 2), {0: None}, [1, 2], id="not one of what cannot be read"),
        pytest.param(
            [*sweep("x", 2), *sweep("x", 1, subnet="b")], {}, [0, 1, 2], id="through all subnets"
        ),
        pytest.param(
            sweep("x", 3), stored(sweep("x", 3)[1:], 4), [0, 4, 5], id="on where writing broke off"
        ),
        pytest.param(
            sweep("x", 2), stored(sweep("y", 3)[:2]), [0, 1], id="over a sweep never written whole"
        ),
        pytest.param(
            [*sweep("x", 2), *sweep("z", 2, subnet="b")],
            stored(sweep("z", 2, subnet="b")[:1]),
            [0, 1, 2, 3],
            id="none twice",
        ),
    ],
)  # fmt: skip
def test_it_chooses_numbers(new: list[NeighborReport], existing: Stored, found: list[int]) -> None:
    placed = number_parts(new, existing, node="n")
    assert numbers(placed) == found
    assert parts_of(placed) == parts_of(new)


def test_it_refuses_a_device_report_as_a_part() -> None:
    with pytest.raises(InvariantError):
        number_parts(
            [NeighborReport(metadata=ReportMetadata(name="n"), spec=ReportSpec())], {}, node="n"
        )


@pytest.mark.parametrize(
    ("swept", "placed", "handed_over", "gone"),
    [
        pytest.param([], [], [], ["n.sweep.9"], id="only what cannot be read"),
        pytest.param(["a"], ["n.sweep.1"], [], ["n.sweep.0", "n.sweep.9"], id="older ones"),
        pytest.param([], [], ["b"], ["n.sweep.2", "n.sweep.9"], id="those that another replaced"),
    ],
)
def test_it_finds_outdated_parts(
    swept: list[str], placed: list[str], handed_over: list[str], gone: list[str]
) -> None:
    existing: Stored = {**stored(sweep("x", 2)), **stored(sweep("x", 1, subnet="b"), 2), 9: None}
    assert (
        find_outdated_parts(
            existing, swept=swept, numbered=placed, handed_over=handed_over, node="n"
        )
        == gone
    )


def is_whole(files: Mapping[int, SweepPart | None]) -> bool:
    by_sweep: dict[str, list[SweepPart]] = {}
    for part in files.values():
        if part is not None:
            by_sweep.setdefault(part.sweep_id, []).append(part)
    for parts in by_sweep.values():
        try:
            unpack_sweep(parts)
        except ReportError:
            continue
        return True
    return False


# One text is always cut into as many parts.
@given(st.lists(st.sampled_from([("t", 1), ("u", 1), ("v", 2), ("w", 3), ("x", 3)]), min_size=2))
def test_a_reader_finds_a_whole_sweep_after_every_single_write(
    sweeps: list[tuple[str, int]],
) -> None:
    files: Stored = {}
    for at, (text, of) in enumerate(sweeps):
        placed = number_parts(sweep(text, of), files, node="n")
        existing = dict(files)
        for number, part in zip(numbers(placed), parts_of(placed), strict=True):
            files[number] = part
            assert is_whole(files) or at == 0
        names = [one.metadata.name for one in placed]
        gone = find_outdated_parts(existing, swept=["a"], numbered=names, handed_over=(), node="n")
        for name in gone:
            del files[int(name.removeprefix("n.sweep."))]
            assert is_whole(files)
        assert len(files) == of
