"""Names as ranges, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.model.name_ranges import expand_names, fold_names

LISTS = [
    pytest.param([], "", id="no name"),
    pytest.param(["node-1"], "node-1", id="one name has no bracket"),
    pytest.param(["node-0001", "node-0002", "node-0003"], "node-[0001-0003]", id="padded numbers"),
    pytest.param(["n8", "n9", "n10", "n11"], "n[8-11]", id="numbers without padding"),
    pytest.param(["n08", "n09", "n10"], "n[08-10]", id="padding that ends with the number"),
    pytest.param(["n098", "n099", "n100"], "n[098-100]", id="padding of one width"),
    pytest.param(["n9", "n010"], "n[9,010]", id="other widths are no range"),
    pytest.param(["n1", "n3", "n4"], "n[1,3-4]", id="gaps"),
    pytest.param(["n2", "n1"], "n[2,1]", id="the order stays"),
    pytest.param(["a1", "b1", "a2"], "a1,b1,a2", id="prefixes stay apart"),
    pytest.param(["login", "login1"], "login,login1", id="a name without a number"),
    pytest.param(["login", "login"], "login,login", id="a repeated name"),
    pytest.param(["n1-ib", "n2-ib"], "n1-ib,n2-ib", id="a number inside of a name"),
    pytest.param(
        ["g0123456789", "g0123456790"], "g0123456789,g0123456790", id="a long number is no range"
    ),
]
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,6}[0-9]{0,4}", fullmatch=True)


@pytest.mark.parametrize(("names", "folded"), LISTS)
def test_it_folds_names(names: list[str], folded: str) -> None:
    assert fold_names(names) == folded
    assert list(expand_names(folded)) == names


@given(st.lists(NAMES, max_size=30))
def test_it_expands_to_the_same_names(names: list[str]) -> None:
    assert list(expand_names(fold_names(names))) == names


@given(st.integers(0, 2000), st.integers(1, 300), st.integers(1, 6))
def test_a_run_is_one_range(start: int, size: int, width: int) -> None:
    names = [f"n{number:0{width}d}" for number in range(start, start + size)]
    assert fold_names(names).count(",") <= 1, "one more where the width is outgrown"


BAD = ("n[", "n[]", "n[1-]", "n[-1]", "n[a]", ",", "n]", "a,,b", "n[2-1]", "n[[1]]")


@pytest.mark.parametrize("text", BAD)
def test_it_refuses_other_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        expand_names(text)


EXPANDED = [
    pytest.param("r[1-2]n[08-09]", "r1n08 r1n09 r2n08 r2n09", id="several brackets"),
    pytest.param("n[1-2]-ib,x", "n1-ib n2-ib x", id="text behind a bracket"),
    pytest.param("n[1-2][3-4]", "n13 n14 n23 n24", id="brackets side by side"),
]


@pytest.mark.parametrize(("text", "names"), EXPANDED)
def test_it_expands_as_slurm_does(text: str, names: str) -> None:
    assert list(expand_names(text)) == names.split()


@pytest.mark.parametrize("text", ["n[1-999999999]", "n[1-999][1-999]", "a,b,c,d,e"])
def test_it_expands_no_more_names_than_the_limit(text: str) -> None:
    with pytest.raises(ValueError, match="at most"):
        expand_names(text, limit=4)
