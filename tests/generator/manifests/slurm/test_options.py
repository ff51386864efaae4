"""The table of options: nothing that a user writes stays unsaid."""

from __future__ import annotations

import pytest

from generator.manifests.fields import Relevance
from generator.manifests.manifest_request import Translation
from generator.manifests.slurm.options import (
    BY_LETTER,
    OPTIONS,
    VARIABLES,
    Argument,
    Effect,
    find_named,
)
from tests.generator.manifests.slurm.clusters import EQUAL, risks_of, translated
from tests.repository import ROOT
from topology.model.errors import PlacementRequestError

VALUES = {
    "--nodes": "4", "--ntasks": "16", "--ntasks-per-node": "3", "--cpus-per-task": "2",
    "--segment": "2", "--switches": "2", "--gpus": "8", "--gpus-per-node": "4",
    "--gpus-per-task": "2", "--gpus-per-socket": "2", "--sockets-per-node": "2",
    "--ntasks-per-gpu": "2", "--cpus-per-gpu": "3", "--gres": "gpu:3", "--mem": "3G",
    "--mem-per-cpu": "2G", "--mem-per-gpu": "5G", "--mincpus": "7", "--job-name": "j",
    "--priority": "9", "--tres-per-task": "cpu=3", "--nodelist": "n1", "--nodefile": "nodes.txt",
    "--exclude": "m1", "--array": "0-3",
}  # fmt: skip
FILES = {"nodes.txt": "n2\n"}
WORDS = [
    *(
        name if option.argument is not Argument.REQUIRED else f"{name}={VALUES.get(name, 'x')}"
        for name, option in OPTIONS.items()
    ),
    *("--exclusive=user", "--exclusive=topo", "--gres=gpu:2,license:1", "--gpus=h100:8"),
    *("--mem=0", "--switches=1@9:00", "--unknown", "--unknown=x", "-Z", "--distribution=block"),
    *("--nodes=2-4", "--nodes=2,4", "--gres=gpu:h100", "--tres-per-task=gres/gpu:a100=1"),
]  # fmt: skip

Outcome = Translation | str


def outcome(*words: str) -> Outcome:
    try:
        return translated(" ".join(words), EQUAL, files=FILES)
    except PlacementRequestError as error:
        return str(error)


def heard(first: Outcome, second: Outcome) -> bool:
    """Return whether two outcomes differ in what a user sees."""
    if isinstance(first, str) or isinstance(second, str):
        return first != second
    seen = [(row.document, row.ignored, row.notes) for row in (first, second)]
    return seen[0] != seen[1]


@pytest.mark.parametrize("word", WORDS)
def test_it_hears_an_option(word: str) -> None:
    assert heard(outcome(), outcome(word))


READ = {name for name, option in OPTIONS.items() if option.effect is Effect.READ}
READ_WORDS = [word for word in WORDS if word.partition("=")[0] in READ]


@pytest.mark.parametrize("first", READ_WORDS)
def test_it_hears_the_second_option_after(first: str) -> None:
    name, alone = first.partition("=")[0], outcome(first)
    deaf = [
        word
        for word in READ_WORDS
        if word.partition("=")[0] != name and not heard(alone, outcome(first, word))
    ]
    assert deaf == [] or isinstance(alone, str)


@pytest.mark.parametrize("name", sorted(OPTIONS.keys() - READ))
def test_it_reports_an_option_that_it_does_not_read(name: str) -> None:
    option = OPTIONS[name]
    value = "=x" if option.argument is Argument.REQUIRED else ""
    (row,) = translated(f"-N 4 {name}{value}").ignored
    assert row.path.partition("=")[0] == name
    assert row.relevance is (Relevance.NONE if option.effect is Effect.NONE else Relevance.POSSIBLE)
    assert row.reason == option.why


MANY_VALUES = [
    pytest.param("--distribution=block:cyclic", Relevance.NONE, id="tasks in order"),
    pytest.param("--distribution=*:block:fcyclic", Relevance.NONE, id="cores in order"),
    pytest.param("--distribution=arbitrary", Relevance.POSSIBLE, id="tasks as in a file"),
    pytest.param("--distribution=block,Pack", Relevance.POSSIBLE, id="packed tasks"),
    pytest.param("--gres-flags=disable-binding", Relevance.NONE, id="GPUs that need no CPUs"),
    pytest.param("--gres-flags=enforce-binding", Relevance.POSSIBLE, id="GPUs with their CPUs"),
]


@pytest.mark.parametrize(("word", "relevance"), MANY_VALUES)
def test_some_values_have_no_effect(word: str, relevance: Relevance) -> None:
    (row,) = translated(f"-N 2 {word}").ignored
    assert row.relevance is relevance


@pytest.mark.parametrize(
    ("word", "risk"),
    [
        ("--constraint=h100", "--constraint=h100"),
        ("-C h100", "--constraint=h100"),
        ("-p long", "--partition=long"),
        ("--gpus-per-node=h100:8", "--gpus-per-node: the type h100"),
        ("--gres=gpu:2,nvme:1", "--gres=nvme:1"),
        ("--tres-per-task=cpu=2,license/x=1", "--tres-per-task=license/x=1"),
        ("--exclusive=topo", "--exclusive=topo"),
        ("--site-option", "--site-option"),
    ],
)
def test_it_says_that_an_option_may_matter(word: str, risk: str) -> None:
    assert risks_of(translated(f"-N 2 {word}")) == [risk]


def test_rows_are_in_alphabetical_order_and_share_no_letter() -> None:
    assert list(OPTIONS) == sorted(OPTIONS)
    letters = [option.letter for option in OPTIONS.values() if option.letter]
    assert sorted(BY_LETTER) == sorted(letters)
    variables = [option.variable for option in OPTIONS.values() if option.variable]
    assert sorted(VARIABLES) == sorted(variables)


def test_a_name_means_itself_although_it_begins_another() -> None:
    assert [option.name for option in find_named("--gpus")] == ["--gpus"]
    assert [option.name for option in find_named("--mem")] == ["--mem"]


def test_the_documentation_lists_the_effect_of_every_option() -> None:
    text = (ROOT / "docs" / "requests.md").read_text(encoding="utf-8")
    table = text.partition("| Option of sbatch |")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    listed = {name.strip("`"): (effect, why) for name, effect, why in rows}
    assert listed == {option.name: (option.effect.value, option.why) for option in OPTIONS.values()}
