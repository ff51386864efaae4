"""The options of sbatch, one row each: what it takes, whether it is read, and how, or why not.

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


class Option(NamedTuple):
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
    Option("--account", _NONE, _ACCOUNT, "A"),
    Option("--acctg-freq", _NONE, _ACCOUNT),
    Option("--array", _READ, "one task: each is a job", "a", _VALUE, "SBATCH_ARRAY_INX"),
    Option("--batch", _NONE, "is about which node of the job runs the script"),
    Option("--bb", _POSSIBLE, "depends on burst buffers"),
    Option("--bbf", _POSSIBLE, "depends on burst buffers"),
    Option("--begin", _NONE, _WHEN, "b"),
    Option("--chdir", _NONE, _SCRIPT, "D"),
    Option("--cluster-constraint", _POSSIBLE, "chooses the cluster"),
    Option("--clusters", _POSSIBLE, "chooses the cluster", "M", _VALUE, "SBATCH_CLUSTERS"),
    Option("--comment", _NONE, _ACCOUNT),
    Option("--consolidate-segments", _READ, _SEGMENTS, "", _FLAG, "SBATCH_CONSOLIDATE_SEGMENTS"),
    Option("--constraint", _POSSIBLE, _FEATURES, "C", _VALUE, "SBATCH_CONSTRAINT"),
    Option("--container", _NONE, _SCRIPT),
    Option("--container-env", _NONE, _PYXIS),
    Option("--container-id", _NONE, _SCRIPT),
    Option("--container-image", _NONE, _PYXIS),
    Option("--container-mount-home", _NONE, _PYXIS, "", _FLAG),
    Option("--container-mounts", _NONE, _PYXIS),
    Option("--container-name", _NONE, _PYXIS),
    Option("--container-remap-root", _NONE, _PYXIS, "", _FLAG),
    Option("--container-workdir", _NONE, _PYXIS),
    Option("--container-writable", _NONE, _PYXIS, "", _FLAG),
    Option("--contiguous", _POSSIBLE, "depends on the order of nodes in slurm.conf", "", _FLAG),
    Option("--core-spec", _POSSIBLE, "keeps cores for the system", "S", _VALUE, "SBATCH_CORE_SPEC"),
    Option("--cores-per-socket", _POSSIBLE, _CORES),
    Option("--cpu-freq", _NONE, _SCRIPT),
    Option("--cpus-per-gpu", _READ, "CPUs for each GPU", "", _VALUE, "SBATCH_CPUS_PER_GPU"),
    Option("--cpus-per-task", _READ, "CPUs of a task, all on one node", "c"),
    Option("--deadline", _NONE, _WHEN),
    Option("--delay-boot", _POSSIBLE, _FEATURES, "", _VALUE, "SBATCH_DELAY_BOOT"),
    Option("--dependency", _NONE, _WHEN, "d"),
    Option(
        "--distribution", _POSSIBLE, "may pack tasks, or take the nodes of a file", "m", _VALUE,
        "SBATCH_DISTRIBUTION", harmless=_LAYOUT,
    ),
    Option("--error", _NONE, _SCRIPT, "e"),
    Option("--exclude", _READ, "nodes that are not used", "x", is_inherited=True),
    Option("--exclusive", _READ, "nodes without other jobs", "", _OPTIONAL, "SBATCH_EXCLUSIVE"),
    Option("--export", _NONE, _SCRIPT),
    Option("--export-file", _NONE, _SCRIPT),
    Option("--extra", _POSSIBLE, "may filter nodes by a field that no node list has"),
    Option("--extra-node-info", _POSSIBLE, _CORES, "B"),
    Option("--get-user-env", _NONE, _SCRIPT, "", _OPTIONAL),
    Option("--gid", _NONE, _SCRIPT),
    Option("--gpu-bind", _NONE, _SCRIPT),
    Option("--gpu-freq", _NONE, _SCRIPT),
    Option("--gpus", _READ, "GPUs of the whole job", "G", _VALUE, "SBATCH_GPUS"),
    Option("--gpus-per-node", _READ, "GPUs of each node", "", _VALUE, "SBATCH_GPUS_PER_NODE"),
    Option(
        "--gpus-per-socket", _READ, "GPUs of each node, with --sockets-per-node", "", _VALUE,
        "SBATCH_GPUS_PER_SOCKET",
    ),
    Option("--gpus-per-task", _READ, "GPUs of a task", "", _VALUE, "SBATCH_GPUS_PER_TASK"),
    Option("--gres", _READ, "GPUs of each node", "", _VALUE, "SBATCH_GRES"),
    Option(
        "--gres-flags", _POSSIBLE, "may bind GPUs to CPUs", "", _VALUE, "SBATCH_GRES_FLAGS",
        harmless="disable-binding",
    ),
    Option("--help", _NONE, _CLIENT, "h", _FLAG),
    Option("--hint", _POSSIBLE, _CORES, "", _VALUE, "SBATCH_HINT"),
    Option("--hold", _NONE, _WHEN, "H", _FLAG),
    Option("--ignore-pbs", _NONE, _CLIENT, "", _FLAG),
    Option("--input", _NONE, _SCRIPT, "i"),
    Option(
        "--job-name", _READ, "name of the gang", "J", _VALUE, "SBATCH_JOB_NAME", is_inherited=True
    ),
    Option("--kill-on-invalid-dep", _NONE, _WHEN),
    Option("--licenses", _NONE, "is about licenses, which no node has", "L"),
    Option("--mail-type", _NONE, _LATER),
    Option("--mail-user", _NONE, _LATER),
    Option("--mcs-label", _POSSIBLE, "may keep jobs with other labels off nodes"),
    Option("--mem", _READ, "memory of each node", "", _VALUE, "SBATCH_MEM_PER_NODE",
           is_inherited=True),
    Option("--mem-bind", _NONE, _SCRIPT),
    Option("--mem-per-cpu", _READ, "memory for each CPU", "", _VALUE, "SBATCH_MEM_PER_CPU"),
    Option("--mem-per-gpu", _READ, "memory for each GPU", "", _VALUE, "SBATCH_MEM_PER_GPU"),
    Option("--mincpus", _READ, "the fewest CPUs of each node"),
    Option("--network", _POSSIBLE, "may reserve parts of NICs", "", _VALUE, "SBATCH_NETWORK"),
    Option("--nice", _NONE, _WHEN, "", _OPTIONAL),
    Option("--no-container-mount-home", _NONE, _PYXIS, "", _FLAG),
    Option("--no-kill", _NONE, _LATER, "k", _OPTIONAL),
    Option("--no-requeue", _NONE, _LATER, "", _FLAG),
    Option("--nodefile", _READ, "a file with the nodes of --nodelist", "F"),
    Option("--nodelist", _READ, "nodes that are used, beside others if they are too few", "w"),
    Option("--nodes", _READ, "number of nodes", "N"),
    Option("--ntasks", _READ, "tasks of the whole job", "n"),
    Option("--ntasks-per-core", _POSSIBLE, _CORES),
    Option("--ntasks-per-gpu", _READ, "tasks for each GPU"),
    Option("--ntasks-per-node", _READ, "tasks of each node, or the most, with --ntasks"),
    Option("--ntasks-per-socket", _POSSIBLE, _CORES),
    Option("--oom-kill-step", _NONE, _LATER, "", _OPTIONAL),
    Option("--open-mode", _NONE, _SCRIPT),
    Option("--output", _NONE, _SCRIPT, "o"),
    Option("--overcommit", _READ, "resources of one task a node", "O", _FLAG, "SBATCH_OVERCOMMIT"),
    Option("--oversubscribe", _POSSIBLE, "may share nodes that other jobs fill", "s", _FLAG),
    Option("--parsable", _NONE, _CLIENT, "", _FLAG),
    Option(
        "--partition", _POSSIBLE, "chooses nodes, and no node list has partitions", "p", _VALUE,
        "SBATCH_PARTITION",
    ),
    Option("--prefer", _POSSIBLE, _FEATURES),
    Option("--priority", _READ, "priority of the gang", is_inherited=True),
    Option("--profile", _NONE, _LATER),
    Option("--propagate", _NONE, _SCRIPT, "", _OPTIONAL),
    Option("--qos", _NONE, _ACCOUNT, "q"),
    Option("--quiet", _NONE, _CLIENT, "Q", _FLAG),
    Option("--reboot", _NONE, _SCRIPT, "", _FLAG),
    Option("--requeue", _NONE, _LATER, "", _OPTIONAL),
    Option("--reservation", _POSSIBLE, "chooses nodes", "", _VALUE, "SBATCH_RESERVATION"),
    Option("--resources", _POSSIBLE, "depends on resources of groups of nodes"),
    Option("--resv-ports", _NONE, _SCRIPT, "", _OPTIONAL),
    Option("--segment", _READ, "nodes of a segment", "", _VALUE, "SBATCH_SEGMENT_SIZE"),
    Option("--signal", _NONE, _LATER),
    Option("--sockets-per-node", _READ, "with --gpus-per-socket, the GPUs of each node"),
    Option(
        "--spread-job", _POSSIBLE, "uses as many nodes as possible", "", _FLAG, "SBATCH_SPREAD_JOB"
    ),
    Option("--spread-segments", _READ, _SEGMENTS, "", _FLAG, "SBATCH_SPREAD_SEGMENTS"),
    Option("--stepmgr", _NONE, _SCRIPT, "", _FLAG),
    Option("--switches", _READ, "the most leaves", "", _VALUE, "SBATCH_REQ_SWITCH"),
    Option("--test-only", _NONE, _CLIENT, "", _FLAG),
    Option("--thread-spec", _POSSIBLE, "keeps threads for the system", "", _VALUE,
           "SBATCH_THREAD_SPEC"),
    Option("--threads-per-core", _POSSIBLE, _CORES, "", _VALUE, "SBATCH_THREADS_PER_CORE"),
    Option("--time", _NONE, _WHEN, "t"),
    Option("--time-min", _NONE, _WHEN),
    Option("--tmp", _POSSIBLE, "depends on local disks, which no node list has"),
    Option("--tres-bind", _NONE, _SCRIPT),
    Option("--tres-per-task", _READ, "CPUs and GPUs of a task", "", _VALUE, "SBATCH_TRES_PER_TASK"),
    Option("--uid", _NONE, _SCRIPT),
    Option("--usage", _NONE, _CLIENT, "", _FLAG),
    Option(
        "--use-min-nodes", _READ, "the fewest nodes of a range", "", _FLAG, "SBATCH_USE_MIN_NODES"
    ),
    Option("--verbose", _NONE, _CLIENT, "v", _FLAG),
    Option("--version", _NONE, _CLIENT, "V", _FLAG),
    Option("--wait", _NONE, _CLIENT, "W", _FLAG),
    Option("--wait-all-nodes", _NONE, _WHEN),
    Option("--wckey", _NONE, _ACCOUNT),
    Option("--wrap", _NONE, _SCRIPT),
)  # fmt: skip
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


def find_named(text: str) -> tuple[Option, ...]:
    """Return the options that a name, or its beginning, means; several if it is ambiguous."""
    name = ALIASES.get(text, text)
    if name in OPTIONS:
        return (OPTIONS[name],)
    names = {ALIASES.get(name, name) for name in (*OPTIONS, *ALIASES) if name.startswith(text)}
    return tuple(OPTIONS[name] for name in sorted(names))


def is_harmless(option: Option, value: str) -> bool:
    """Return whether a value of an option that may matter has no effect."""
    return bool(option.harmless and re.fullmatch(option.harmless, value))
