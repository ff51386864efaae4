"""Every parser passes on the stored inputs of fuzzing, and on long variants of them."""

import pytest

from tests.fuzz.corpus import MAX_KEPT, corpus_file, read_corpus
from tests.fuzz.long_input import stretch
from tests.fuzz.targets import TARGETS
from tests.fuzz.verdicts import judge

NAMES = sorted(TARGETS)


@pytest.mark.parametrize("name", NAMES)
def test_it_passes_on_stored_inputs(name: str) -> None:
    target = TARGETS[name]
    for raw in (*target.seeds(), *read_corpus(name)):
        assert judge(target, raw).problem == ""


@pytest.mark.parametrize("name", NAMES)
def test_it_passes_on_long_inputs(name: str) -> None:
    target = TARGETS[name]
    shortest = min(target.seeds(), key=len)
    for long in stretch(shortest, target.max_bytes // 8):
        assert judge(target, long).problem == ""


@pytest.mark.parametrize("name", NAMES)
def test_it_stores_few_inputs_of_every_parser(name: str) -> None:
    assert 0 < len(read_corpus(name)) <= MAX_KEPT


def test_it_stores_no_inputs_of_a_removed_parser() -> None:
    kept = {file.stem for file in corpus_file("any").parent.glob("*.txt")}
    assert kept == set(TARGETS)
