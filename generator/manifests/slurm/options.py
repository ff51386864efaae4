"""The options of sbatch, one row each: its argument, its effect, and the reason.

An option that has no row may matter. Sources: the sbatch manual page of Slurm 25.11; the README of
NVIDIA's plugin Pyxis.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple


class Effect(StrEnum):
    """What an option does to a placement."""

    READ = "read"
    NONE = "no effect"
    POSSIBLE = "may matter"


class Argument(StrEnum):
    """Whether an option takes a value."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    """Only behind an equals sign, or right behind the letter."""
    NONE = "none"


class SbatchOption(NamedTuple):
    """One option."""

    name: str
    effect: Effect
    why: str
    """How the option is read, or why it has no effect, or why it may matter."""
    letter: str = ""
    argument: Argument = Argument.REQUIRED
    variable: str = ""
    """Environment variable that sets an option which is read or may matter."""
    harmless: str = ""
    """A pattern of values without effect, of an option that may matter."""
    is_inherited: bool = False
    """Whether later components of a heterogeneous job have the option of an earlier one."""


_READ, _NONE, _POSSIBLE = Effect.READ, Effect.NONE, Effect.POSSIBLE
_FLAG, _OPTIONAL, _VALUE = Argument.NONE, Argument.OPTIONAL, Argument.REQUIRED
_ACCOUNT: Final = "is about accounting and limits"
_CLIENT: Final = "is about sbatch itself"
_CORES: Final = "depends on sockets, cores and threads, which no node list has"
_FEATURES: Final = "depends on features, which no node list has"
_LATER: Final = "is about a job that runs already"
_PYXIS: Final = "is about the container of the script, for the plugin Pyxis"
_SCRIPT: Final = "is about the script, once nodes are chosen"
_SEGMENTS: Final = "how segments lie to each other"
_WHEN: Final = "is about when a job runs, not where"
_LAYOUT: Final = r"(?:\*|block|f?cyclic)(?::(?:\*|block|f?cyclic)){0,2}"

_ROWS: Final = (
    SbatchOption("--account", _NONE, _ACCOUNT, "A"),
    SbatchOption("--acctg-freq", _NONE, _ACCOUNT),
    SbatchOption("--array", _READ, "one task: each is a job", "a", _VALUE, "SBATCH_ARRAY_INX"),
    SbatchOption("--batch", _NONE, "is about which node of the job runs the script"),
    SbatchOption("--bb", _POSSIBLE, "depends on burst buffers"),
    SbatchOption("--bbf", _POSSIBLE, "depends on burst buffers"),
    SbatchOption("--begin", _NONE, _WHEN, "b"),
    SbatchOption("--chdir", _NONE, _SCRIPT, "D"),
    SbatchOption("--cluster-constraint", _POSSIBLE, "chooses the cluster"),
    SbatchOption("--clusters", _POSSIBLE, "chooses the cluster", "M", _VALUE, "SBATCH_CLUSTERS"),
    SbatchOption("--comment", _NONE, _ACCOUNT),
    SbatchOption(
        "--consolidate-segments", _READ, _SEGMENTS, "", _FLAG, "SBATCH_CONSOLIDATE_SEGMENTS"
    ),
    SbatchOption("--constraint", _POSSIBLE, _FEATURES, "C", _VALUE, "SBATCH_CONSTRAINT"),
    SbatchOption("--container", _NONE, _SCRIPT),
    SbatchOption("--container-env", _NONE, _PYXIS),
    SbatchOption("--container-id", _NONE, _SCRIPT),
    SbatchOption("--container-image", _NONE, _PYXIS),
    SbatchOption("--container-mount-home", _NONE, _PYXIS, "", _FLAG),
    SbatchOption("--container-mounts", _NONE, _PYXIS),
    SbatchOption("--container-name", _NONE, _PYXIS),
    SbatchOption("--container-remap-root", _NONE, _PYXIS, "", _FLAG),
    SbatchOption("--container-workdir", _NONE, _PYXIS),
    SbatchOption("--container-writable", _NONE, _PYXIS, "", _FLAG),
    SbatchOption(
        "--contiguous", _POSSIBLE, "depends on the order of nodes in slurm.conf", "", _FLAG
    ),
    SbatchOption(
        "--core-spec", _POSSIBLE, "keeps cores for the system", "S", _VALUE, "SBATCH_CORE_SPEC"
    ),
    SbatchOption("--cores-per-socket", _POSSIBLE, _CORES),
    SbatchOption("--cpu-freq", _NONE, _SCRIPT),
    SbatchOption("--cpus-per-gpu", _READ, "CPUs for each GPU", "", _VALUE, "SBATCH_CPUS_PER_GPU"),
    SbatchOption("--cpus-per-task", _READ, "CPUs of a task, all on one node", "c"),
    SbatchOption("--deadline", _NONE, _WHEN),
    SbatchOption("--delay-boot", _POSSIBLE, _FEATURES, "", _VALUE, "SBATCH_DELAY_BOOT"),
    SbatchOption("--dependency", _NONE, _WHEN, "d"),
    SbatchOption(
        "--distribution",
        _POSSIBLE,
        "may pack tasks, or take the nodes of a file",
        "m",
        _VALUE,
        "SBATCH_DISTRIBUTION",
        harmless=_LAYOUT,
    ),
    SbatchOption("--error", _NONE, _SCRIPT, "e"),
    SbatchOption("--exclude", _READ, "nodes that are not used", "x", is_inherited=True),
    SbatchOption(
        "--exclusive", _READ, "nodes without other jobs", "", _OPTIONAL, "SBATCH_EXCLUSIVE"
    ),
    SbatchOption("--export", _NONE, _SCRIPT),
    SbatchOption("--export-file", _NONE, _SCRIPT),
    SbatchOption("--extra", _POSSIBLE, "may filter nodes by a field that no node list has"),
    SbatchOption("--extra-node-info", _POSSIBLE, _CORES, "B"),
    SbatchOption("--get-user-env", _NONE, _SCRIPT, "", _OPTIONAL),
    SbatchOption("--gid", _NONE, _SCRIPT),
    SbatchOption("--gpu-bind", _NONE, _SCRIPT),
    SbatchOption("--gpu-freq", _NONE, _SCRIPT),
    SbatchOption("--gpus", _READ, "GPUs of the whole job", "G", _VALUE, "SBATCH_GPUS"),
    SbatchOption("--gpus-per-node", _READ, "GPUs of each node", "", _VALUE, "SBATCH_GPUS_PER_NODE"),
    SbatchOption(
        "--gpus-per-socket",
        _READ,
        "GPUs of each node, with --sockets-per-node",
        "",
        _VALUE,
        "SBATCH_GPUS_PER_SOCKET",
    ),
    SbatchOption("--gpus-per-task", _READ, "GPUs of a task", "", _VALUE, "SBATCH_GPUS_PER_TASK"),
    SbatchOption("--gres", _READ, "GPUs of each node", "", _VALUE, "SBATCH_GRES"),
    SbatchOption(
        "--gres-flags",
        _POSSIBLE,
        "may bind GPUs to CPUs",
        "",
        _VALUE,
        "SBATCH_GRES_FLAGS",
        harmless="disable-binding",
    ),
    SbatchOption("--help", _NONE, _CLIENT, "h", _FLAG),
    SbatchOption("--hint", _POSSIBLE, _CORES, "", _VALUE, "SBATCH_HINT"),
    SbatchOption("--hold", _NONE, _WHEN, "H", _FLAG),
    SbatchOption("--ignore-pbs", _NONE, _CLIENT, "", _FLAG),
    SbatchOption("--input", _NONE, _SCRIPT, "i"),
    SbatchOption(
        "--job-name", _READ, "name of the gang", "J", _VALUE, "SBATCH_JOB_NAME", is_inherited=True
    ),
    SbatchOption("--kill-on-invalid-dep", _NONE, _WHEN),
    SbatchOption("--licenses", _NONE, "is about licenses, which no node has", "L"),
    SbatchOption("--mail-type", _NONE, _LATER),
    SbatchOption("--mail-user", _NONE, _LATER),
    SbatchOption("--mcs-label", _POSSIBLE, "may keep jobs with other labels off nodes"),
    SbatchOption(
        "--mem", _READ, "memory of each node", "", _VALUE, "SBATCH_MEM_PER_NODE", is_inherited=True
    ),
    SbatchOption("--mem-bind", _NONE, _SCRIPT),
    SbatchOption("--mem-per-cpu", _READ, "memory for each CPU", "", _VALUE, "SBATCH_MEM_PER_CPU"),
    SbatchOption("--mem-per-gpu", _READ, "memory for each GPU", "", _VALUE, "SBATCH_MEM_PER_GPU"),
    SbatchOption("--mincpus", _READ, "the fewest CPUs of each node"),
    SbatchOption("--network", _POSSIBLE, "may reserve parts of NICs", "", _VALUE, "SBATCH_NETWORK"),
    SbatchOption("--nice", _NONE, _WHEN, "", _OPTIONAL),
    SbatchOption("--no-container-mount-home", _NONE, _PYXIS, "", _FLAG),
    SbatchOption("--no-kill", _NONE, _LATER, "k", _OPTIONAL),
    SbatchOption("--no-requeue", _NONE, _LATER, "", _FLAG),
    SbatchOption("--nodefile", _READ, "a file with the nodes of --nodelist", "F"),
    SbatchOption(
        "--nodelist", _READ, "nodes that are used, beside others if they are too few", "w"
    ),
    SbatchOption("--nodes", _READ, "number of nodes", "N"),
    SbatchOption("--ntasks", _READ, "tasks of the whole job", "n"),
    SbatchOption("--ntasks-per-core", _POSSIBLE, _CORES),
    SbatchOption("--ntasks-per-gpu", _READ, "tasks for each GPU"),
    SbatchOption("--ntasks-per-node", _READ, "tasks of each node, or the most, with --ntasks"),
    SbatchOption("--ntasks-per-socket", _POSSIBLE, _CORES),
    SbatchOption("--oom-kill-step", _NONE, _LATER, "", _OPTIONAL),
    SbatchOption("--open-mode", _NONE, _SCRIPT),
    SbatchOption("--output", _NONE, _SCRIPT, "o"),
    SbatchOption(
        "--overcommit", _READ, "resources of one task a node", "O", _FLAG, "SBATCH_OVERCOMMIT"
    ),
    SbatchOption("--oversubscribe", _POSSIBLE, "may share nodes that other jobs fill", "s", _FLAG),
    SbatchOption("--parsable", _NONE, _CLIENT, "", _FLAG),
    SbatchOption(
        "--partition",
        _POSSIBLE,
        "chooses nodes by partition, which no node list has",
        "p",
        _VALUE,
        "SBATCH_PARTITION",
    ),
    SbatchOption("--prefer", _POSSIBLE, _FEATURES),
    SbatchOption("--priority", _READ, "priority of the gang", is_inherited=True),
    SbatchOption("--profile", _NONE, _LATER),
    SbatchOption("--propagate", _NONE, _SCRIPT, "", _OPTIONAL),
    SbatchOption("--qos", _NONE, _ACCOUNT, "q"),
    SbatchOption("--quiet", _NONE, _CLIENT, "Q", _FLAG),
    SbatchOption("--reboot", _NONE, _SCRIPT, "", _FLAG),
    SbatchOption("--requeue", _NONE, _LATER, "", _OPTIONAL),
    SbatchOption("--reservation", _POSSIBLE, "chooses nodes", "", _VALUE, "SBATCH_RESERVATION"),
    SbatchOption("--resources", _POSSIBLE, "depends on resources of groups of nodes"),
    SbatchOption("--resv-ports", _NONE, _SCRIPT, "", _OPTIONAL),
    SbatchOption("--segment", _READ, "nodes of a segment", "", _VALUE, "SBATCH_SEGMENT_SIZE"),
    SbatchOption("--signal", _NONE, _LATER),
    SbatchOption("--sockets-per-node", _READ, "with --gpus-per-socket, the GPUs of each node"),
    SbatchOption(
        "--spread-job", _POSSIBLE, "uses as many nodes as possible", "", _FLAG, "SBATCH_SPREAD_JOB"
    ),
    SbatchOption("--spread-segments", _READ, _SEGMENTS, "", _FLAG, "SBATCH_SPREAD_SEGMENTS"),
    SbatchOption("--stepmgr", _NONE, _SCRIPT, "", _FLAG),
    SbatchOption("--switches", _READ, "the most leaves", "", _VALUE, "SBATCH_REQ_SWITCH"),
    SbatchOption("--test-only", _NONE, _CLIENT, "", _FLAG),
    SbatchOption(
        "--thread-spec", _POSSIBLE, "keeps threads for the system", "", _VALUE, "SBATCH_THREAD_SPEC"
    ),
    SbatchOption("--threads-per-core", _POSSIBLE, _CORES, "", _VALUE, "SBATCH_THREADS_PER_CORE"),
    SbatchOption("--time", _NONE, _WHEN, "t"),
    SbatchOption("--time-min", _NONE, _WHEN),
    SbatchOption("--tmp", _POSSIBLE, "depends on local disks, which no node list has"),
    SbatchOption("--tres-bind", _NONE, _SCRIPT),
    SbatchOption(
        "--tres-per-task", _READ, "CPUs and GPUs of a task", "", _VALUE, "SBATCH_TRES_PER_TASK"
    ),
    SbatchOption("--uid", _NONE, _SCRIPT),
    SbatchOption("--usage", _NONE, _CLIENT, "", _FLAG),
    SbatchOption(
        "--use-min-nodes", _READ, "the fewest nodes of a range", "", _FLAG, "SBATCH_USE_MIN_NODES"
    ),
    SbatchOption("--verbose", _NONE, _CLIENT, "v", _FLAG),
    SbatchOption("--version", _NONE, _CLIENT, "V", _FLAG),
    SbatchOption("--wait", _NONE, _CLIENT, "W", _FLAG),
    SbatchOption("--wait-all-nodes", _NONE, _WHEN),
    SbatchOption("--wckey", _NONE, _ACCOUNT),
    SbatchOption("--wrap", _NONE, _SCRIPT),
)
OPTIONS: Final = {option.name: option for option in _ROWS}
"""By name, in alphabetical order."""
BY_LETTER: Final = {option.letter: option for option in _ROWS if option.letter}
ALIASES: Final = {
    "--cluster": "--clusters",
    "--ntasks-per-tres": "--ntasks-per-gpu",
    "--tasks-per-node": "--ntasks-per-node",
}
"""Names that sbatch accepts and its manual does not list."""
VARIABLES: Final = {option.variable: option for option in _ROWS if option.variable}
"""By environment variable. Variables of options without effect are left out."""


def find_named(text: str) -> tuple[SbatchOption, ...]:
    """Return the options that a name, or its beginning, means; several if it is ambiguous."""
    name = ALIASES.get(text, text)
    if name in OPTIONS:
        return (OPTIONS[name],)
    names = {ALIASES.get(name, name) for name in (*OPTIONS, *ALIASES) if name.startswith(text)}
    return tuple(OPTIONS[name] for name in sorted(names))


def is_harmless(option: SbatchOption, value: str) -> bool:
    """Return whether a value of an option that may matter has no effect."""
    return bool(option.harmless and re.fullmatch(option.harmless, value))
