"""Words, scripts and environment variables as sbatch reads them."""

from __future__ import annotations

import re

import pytest

from generator.manifests.slurm.batch_job import parse_batch_job
from generator.manifests.slurm.command_line import (
    is_script,
    parse_command_line,
    parse_environment,
    parse_script,
    split_words,
)
from tests.generator.manifests.slurm.clusters import groups_of, notes_of, risks_of, translated
from topology.model.errors import PlacementRequestError

WORDS = [
    pytest.param("-N4", {"--nodes": "4"}, id="a glued value"),
    pytest.param("-N 4", {"--nodes": "4"}, id="a value apart"),
    pytest.param("--nodes 4", {"--nodes": "4"}, id="a value behind a blank"),
    pytest.param("--nodes=4", {"--nodes": "4"}, id="a value behind an equals sign"),
    pytest.param("-QN4", {"--quiet": "yes", "--nodes": "4"}, id="a flag and a value in one word"),
    pytest.param("-k -HW", {"--no-kill": "yes", "--hold": "yes", "--wait": "yes"}, id="flags"),
    pytest.param("-koff", {"--no-kill": "off"}, id="an optional value"),
    pytest.param("--exclusive -N 2", {"--exclusive": "yes", "--nodes": "2"}, id="no value"),
    pytest.param("--exclusive=user", {"--exclusive": "user"}, id="a value that may be absent"),
    pytest.param("--part=x", {"--partition": "x"}, id="the beginning of a name"),
    pytest.param("--tasks-per-node=8", {"--ntasks-per-node": "8"}, id="another name"),
    pytest.param("--task=8", {"--ntasks-per-node": "8"}, id="the beginning of another name"),
    pytest.param("-N 2 -N 4", {"--nodes": "4"}, id="the last of several"),
    pytest.param(
        "-J 'a b' --comment=\"c d\"", {"--job-name": "a b", "--comment": "c d"}, id="quotes"
    ),
    pytest.param("--mail-user x --mem=-1", {"--mail-user": "x", "--mem": "-1"}, id="a minus"),
]


@pytest.mark.parametrize(("text", "values"), WORDS)
def test_it_reads_words(text: str, values: dict[str, str]) -> None:
    (given,) = parse_command_line(split_words(text))
    assert (given.values, given.unknown, given.script) == (values, [], ())


def test_it_leaves_the_words_behind_the_script_to_the_script() -> None:
    (given,) = parse_command_line(split_words("-N 2 run.sh -N 4 --mem=x"))
    assert (given.values, given.script) == ({"--nodes": "2"}, ("run.sh", "-N", "4", "--mem=x"))


def test_it_separates_components_of_the_command_line() -> None:
    first, second = parse_command_line(split_words("-N 2 : -N 4 run.sh"))
    assert (first.values, second.values) == ({"--nodes": "2"}, {"--nodes": "4"})
    assert (first.script, second.script) == ((), ("run.sh",))


UNKNOWN = [
    pytest.param("--site-option=x -N 2", ["--site-option=x"], id="an option with a value"),
    pytest.param("--site-option x -N 2", ["--site-option", "x"], id="a value apart"),
    pytest.param("--site-option -N 2", ["--site-option"], id="a flag"),
    pytest.param("-Z -N 2", ["-Z"], id="a letter"),
    pytest.param("-QZ4 -N 2", ["-Z4"], id="a letter behind a flag"),
]


@pytest.mark.parametrize(("text", "unknown"), UNKNOWN)
def test_it_keeps_words_that_no_table_explains(text: str, unknown: list[str]) -> None:
    (given,) = parse_command_line(split_words(text))
    assert (given.values.get("--nodes"), given.unknown) == ("2", unknown)


REFUSED = [
    pytest.param(
        "--node=4", "--node is ambiguous: --nodefile, --nodelist, --nodes", id="a beginning"
    ),
    pytest.param("-N", "--nodes: expected a value, got the end of the line", id="no value"),
    pytest.param("--hold=yes", "--hold: expected no value, got 'yes'", id="a value of a flag"),
    pytest.param("-N 1 " * 1025, "sbatch: expected at most 2048 words", id="words without end"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_it_refuses_words(text: str, why: str) -> None:
    with pytest.raises(PlacementRequestError) as caught:
        parse_command_line(split_words(text))
    assert why in str(caught.value)


LINES = [
    pytest.param("#SBATCH -N4 # four", ["-N4"], id="a comment"),
    pytest.param("#SBATCH-N4", ["-N4"], id="no blank"),
    pytest.param("#SBATCH -J 'a b' -C \"x&y\"", ["-J", "a b", "-C", "x&y"], id="quotes"),
    pytest.param("#SBATCH -J a\\ b", ["-J", "a b"], id="an escaped blank"),
    pytest.param("#SBATCH -C a#b", ["-C", "a"], id="a comment inside a word"),
    pytest.param("##SBATCH -N4", [], id="a commented line"),
    pytest.param("# SBATCH -N4", [], id="a blank behind the #"),
    pytest.param(" #SBATCH -N4", [], id="a blank before the #"),
    pytest.param("#SBATCH -N\n#SBATCH 4", ["-N", "4"], id="a value on the next line"),
    pytest.param("\n# text\n  \n#SBATCH -n2", ["-n2"], id="comments and empty lines before"),
    pytest.param("module load x\n#SBATCH -N4", [], id="a command before"),
]


@pytest.mark.parametrize(("lines", "words"), LINES)
def test_it_reads_lines_of_a_script(lines: str, words: list[str]) -> None:
    (found,) = parse_script(f"#!/bin/sh\n{lines}\nsrun x\n").components
    assert list(found) == words


def test_it_separates_components_of_a_script() -> None:
    text = "#!/bin/sh\n#SBATCH -N1\n#SBATCH hetjob\n#SBATCH -N2\n#SBATCH PackJob -n3\n"
    assert parse_script(text).components == (("-N1",), ("-N2",), ("-n3",))


def test_it_notes_lines_behind_the_first_command() -> None:
    (note,) = parse_script("#!/bin/sh\nsrun x\n#SBATCH -N4\n").notes
    assert str(note) == "line 3: sbatch ignores #SBATCH after the first command"


def test_it_says_that_lines_for_other_systems_may_matter() -> None:
    found = translated("", script="#!/bin/sh\n#PBS -l nodes=4\n#SBATCH -N2\n")
    assert risks_of(found) == ["line 2: #PBS -l nodes=4"]


BAD_SCRIPTS = [
    pytest.param("#SBATCH -N4\r", "line 2: sbatch refuses line breaks of DOS", id="line breaks"),
    pytest.param("#SBATCH -J 'x", "line 2: No closing quotation: -J 'x", id="an open quotation"),
    pytest.param(
        "#SBATCH -N4 run", "expected an option in an #SBATCH line, got 'run'", id="a word"
    ),
]


@pytest.mark.parametrize(("lines", "why"), BAD_SCRIPTS)
def test_it_refuses_lines_of_a_script(lines: str, why: str) -> None:
    with pytest.raises(PlacementRequestError) as caught:
        translated("", script=f"#!/bin/sh\n{lines}\n")
    assert why in str(caught.value)


def test_it_detects_a_script_by_its_first_line_and_options() -> None:
    assert is_script("#!/bin/sh\n#SBATCH -N 4\n")
    assert not is_script("#!/bin/sh\necho\n")
    assert not is_script("apiVersion: v1\n#SBATCH -N 4\n")


SCRIPT = "#!/bin/sh\n#SBATCH -N 2 --gpus-per-node=8\n"


def test_the_command_line_comes_before_the_environment_and_both_before_the_script() -> None:
    gpus = {"SBATCH_GPUS_PER_NODE": "4"}
    (of_script,) = translated("", script=SCRIPT).document["spec"]["groups"]
    assert (of_script["count"], of_script["request"]) == (2, {"nvidia.com/gpu": 8})
    (of_shell,) = translated("", script=SCRIPT, environment=gpus).document["spec"]["groups"]
    assert of_shell["request"] == {"nvidia.com/gpu": 4}
    words = "-N 3 --gpus-per-node=2"
    (typed,) = translated(words, script=SCRIPT, environment=gpus).document["spec"]["groups"]
    assert (typed["count"], typed["request"]) == (3, {"nvidia.com/gpu": 2})


def test_it_reads_the_script_that_the_command_line_names() -> None:
    found = translated("-N 3 run.sh -N 9", files={"run.sh": SCRIPT})
    (group,) = found.document["spec"]["groups"]
    assert (group["count"], group["request"]) == (3, {"nvidia.com/gpu": 8})
    assert [str(row) for row in found.ignored] == ["-N", "9"]


def test_it_says_that_a_script_that_it_cannot_read_may_matter() -> None:
    assert risks_of(translated("-N 3 run.sh")) == ["run.sh: its #SBATCH lines"]


def test_the_last_options_of_the_command_line_are_of_all_later_components() -> None:
    script = "#!/bin/sh\n#SBATCH -N1\n#SBATCH hetjob\n#SBATCH -N2\n#SBATCH hetjob\n#SBATCH -N3\n"
    groups = translated("-c 2", script=script).document["spec"]["groups"]
    assert [(row["count"], row["request"]) for row in groups] == [
        (1, {"cpu": 2}),
        (2, {"cpu": 2}),
        (3, {"cpu": 2}),
    ]


def test_later_components_inherit_what_sbatch_keeps() -> None:
    first, second = groups_of("-N1 --mem=1G -c 2 -x n1 : -N2")
    assert (first["request"], second["request"]) == (
        {"cpu": 2, "memory": 1 << 30},
        {"memory": 1 << 30},
    )
    assert second["node_affinity"] == first["node_affinity"]


VARIABLES = [
    pytest.param({"SBATCH_GPUS": "8"}, {"--gpus": "8"}, id="a value"),
    pytest.param({"SBATCH_OVERCOMMIT": ""}, {"--overcommit": "yes"}, id="an empty flag"),
    pytest.param({"SBATCH_OVERCOMMIT": "1"}, {"--overcommit": "yes"}, id="a number that is not 0"),
    pytest.param({"SBATCH_OVERCOMMIT": "0"}, {}, id="a flag that is off"),
    pytest.param({"SBATCH_EXCLUSIVE": "user"}, {"--exclusive": "user"}, id="an optional value"),
    pytest.param({"SBATCH_EXCLUSIVE": "yes"}, {"--exclusive": "yes"}, id="an optional value: yes"),
    pytest.param({"SBATCH_ACCOUNT": "x", "SLURM_JOB_ID": "4"}, {}, id="variables without effect"),
    pytest.param(
        {"SBATCH_REQ_SWITCH": "2", "SBATCH_WAIT4SWITCH": "9:00"},
        {"--switches": "2@9:00"},
        id="the wait of switches",
    ),
]


@pytest.mark.parametrize(("environment", "values"), VARIABLES)
def test_it_reads_variables(environment: dict[str, str], values: dict[str, str]) -> None:
    assert parse_environment(environment) == values


def test_it_names_the_variables_that_it_reads() -> None:
    found = translated("-N 2", environment={"SBATCH_GPUS_PER_NODE": "4", "SBATCH_PARTITION": "x"})
    assert "environment: as sbatch reads it: SBATCH_GPUS_PER_NODE, SBATCH_PARTITION" in notes_of(
        found
    )
    assert risks_of(found) == ["--partition=x"]


def test_a_variable_gives_way_to_an_option_that_excludes_it() -> None:
    found = translated("-N 2 --mem-per-cpu=1G -c 4", environment={"SBATCH_MEM_PER_NODE": "9G"})
    (group,) = found.document["spec"]["groups"]
    assert group["request"] == {"cpu": 4, "memory": 4 << 30}
    assert "SBATCH_MEM_PER_NODE: --mem-per-cpu is given" in map(str, found.ignored)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("nodes=24", "--nodes=24"),
        ("nodes=24 gres=gpu:8", "--nodes=24 --gres=gpu:8"),
        ("nodes 24 exclusive", "--nodes=24 --exclusive"),
        ("N=24 -c 4", "--nodes=24 -c 4"),
        ("N 24", "--nodes=24"),
        ("24", "--nodes=24"),
        ("tasks-per-node=8", "--ntasks-per-node=8"),
        ("nodse=24", "--nodes=24"),
        ("--nodes=24 gres=gpu:8", "--gres=gpu:8"),
    ],
)
def test_an_option_without_dashes_is_refused_with_what_was_meant(text: str, meant: str) -> None:
    with pytest.raises(PlacementRequestError, match=f"such as {re.escape(meant)}$"):
        translated(text)


@pytest.mark.parametrize(
    "text", ["job.sh", "nodes", "/jobs/nodes=24", "-N 2 job.sh nodes=3", "run=b"]
)
def test_a_word_that_may_be_a_script_is_none_of_the_options(text: str) -> None:
    assert any("#SBATCH lines" in row for row in risks_of(translated(text)))


def test_a_script_with_the_name_of_an_option_is_read() -> None:
    job = parse_batch_job(["nodes=24"], read_text=lambda _: "#!/bin/sh\n#SBATCH -N 3\n")
    assert job.size().spec["groups"][0]["count"] == 3
