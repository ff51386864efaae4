"""Run cases from public reports with the installed `toponaut`, and say which answers are right.

    python -m tests.cases FOLDER [FOLDER ...]
    python -m tests.cases --unpack TARGET FOLDER

FOLDER is a case (it holds a case.json) or a folder of cases. Each case runs in a temporary copy of
its folder. Prints `ID: holds` or `ID: FALLS: what came` for each case, then `N/M cases`; the exit
code is 1 if a case falls, 2 without cases. --unpack writes the inputs of one case to the new folder
TARGET, prints its commands, and runs nothing.

The inputs of a case are the files beside case.json. input.txtar holds many: a line `-- PATH --`
begins a file, a line `-- PATH -> TARGET --` is a link, and a file that begins with #! is a program.
A PATH with {A,B} stands for one with A and one with B, which are equal.
A command is the list of arguments of toponaut, or {"for": [word, ...], "run": [program, argument,
...], "to": file}: the program runs once for each word, put in place of %, and what it prints is
written to the file.

A check is {"at": what to look at, "op": how, "value": with what}. It looks at the last command, or
at the one whose index is "command". {"any": [[check, ...], ...]} holds if all checks of one of the
lists hold. A case needs all its checks.

at      exit, stdout, stderr, file:NAME, or json:PATH in the document on stdout. PATH is keys with
        dots between; * is every key or index. With a *, the check sees the list of all values but
        nulls. If nothing is there, it falls. output is stdout and stderr. findings are those of
        `findings -o json`, each as one line: severity, kind, subject, message, ports of the
        evidence. cables:NAME are the ports that `describe -o json` shows with a cable to the device
        NAME (* for any device); a port with two cables is there twice.
eq, in  the value is this; is one of these
count, distinct  so many values; so many different values: a number, or [least, most]
shares  {pattern: how many of the values match it}: a number, or [least, most]
within  one of these patterns matches all values; where values are lists, each list has one for all
        of its items
whole   no list among the values has nulls beside other items
same, superset  the values are these, in any order (lists in lists as well); include these
longest  no list among the values is longer
has, lacks  the text has a match of this pattern; has none
some, none  one of the values has a match of each of these patterns; no value has one of this, or
        there is no value
Patterns are regular expressions. In shares and within they match a whole value; elsewhere ^ and $
match at each line.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

TIMEOUT_S = 60
PACKED = "input.txtar"
HEAD = re.compile(r"-- (\S+)(?: -> (\S+))? --")


@dataclass(frozen=True)
class Outcome:
    """What one command did, and the folder it ran in."""

    exit: int
    stdout: str
    stderr: str
    folder: Path

    def find(self, at: str) -> Any:
        """Return what `at` names, None where there is nothing."""
        kind, _, name = at.partition(":")
        if kind == "json":
            return find_in_json(self.stdout, name)
        if kind == "file":
            path = self.folder / name
            return path.read_text() if path.is_file() else None
        if kind in ("findings", "cables"):
            try:
                document = json.loads(self.stdout)
                return (
                    list_findings(document)
                    if kind == "findings"
                    else list_cabled_ports(document, name)
                )
            except (ValueError, KeyError, TypeError, AttributeError):
                return None  # no document, or one of another form
        texts = {"stdout": self.stdout, "stderr": self.stderr, "output": self.stdout + self.stderr}
        return self.exit if kind == "exit" else texts[kind]

    def is_document(self) -> bool:
        try:
            json.loads(self.stdout)
        except ValueError:
            return False
        return True


Execute: TypeAlias = Callable[[list[str], Path], Outcome]
"""Runs the words of one command line in a folder."""


def list_findings(document: Any) -> list[str]:
    lines = []
    for finding in document:
        subject, ends = finding["subject"], (finding.get("evidence") or {}).get("ports") or []
        words = [
            finding["severity"],
            finding["kind"],
            subject["device"],
            subject.get("port"),
            ":",
            finding["message"],
        ]
        words += [word for end in ends for word in (end["device"], end.get("port"))]
        lines.append(" ".join(str(word) for word in words if word))
    return lines


def list_cabled_ports(document: Any, device: str) -> list[str]:
    return [
        port["name"]
        for port in document["ports"]
        for link in port["links"]
        if device in ("*", link["device"])
    ]


def find_in_json(text: str, path: str) -> Any:
    """Return the value at a path, or the list of values if it has a *; None if it leads nowhere."""
    try:
        found = [json.loads(text)]
    except ValueError:
        return None
    steps = path.split(".")
    for step in steps:
        found = [child for value in found for child in list_children(value, step)]
        if not found and step != "*":
            return None
    return [value for value in found if value is not None] if "*" in steps else found[0]


def list_children(value: Any, step: str) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values()) if step == "*" else [value[step]] if step in value else []
    if isinstance(value, list):
        return value if step == "*" else value[int(step) :][:1] if step.isdigit() else []
    return []


def is_number(number: int, expected: Any) -> bool:
    least, most = expected if isinstance(expected, list) else (expected, expected)
    return bool(least <= number <= most)


def count_matches(values: list[Any], pattern: str) -> int:
    return sum(re.fullmatch(pattern, value) is not None for value in values)


def is_hit(pattern: str, value: Any) -> bool:
    return re.search(pattern, str(value), re.MULTILINE) is not None


def is_within(values: list[Any], patterns: list[str]) -> bool:
    if values and all(isinstance(value, list) for value in values):
        rows = [[item for item in value if item is not None] for value in values]
        return any(rows) and all(is_within(row, patterns) for row in rows if row)
    return bool(values) and any(
        count_matches(values, pattern) == len(values) for pattern in patterns
    )


def sort_lists(value: Any) -> Any:
    return (
        sorted((sort_lists(item) for item in value), key=repr) if isinstance(value, list) else value
    )


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda found, value: found == value,
    "in": lambda found, value: found in value,
    "count": lambda found, value: is_number(len(found), value),
    "distinct": lambda found, value: is_number(len(set(found)), value),
    "shares": lambda found, value: all(
        is_number(count_matches(found, key), value[key]) for key in value
    ),
    "within": is_within,
    "whole": lambda found, value: all(None not in row or not any(row) for row in found) is value,
    "same": lambda found, value: sort_lists(found) == sort_lists(value),
    "superset": lambda found, value: all(
        sort_lists(item) in map(sort_lists, found) for item in value
    ),
    "longest": lambda found, value: all(len(item) <= value for item in found),
    "has": lambda found, value: re.search(value, found, re.MULTILINE) is not None,
    "lacks": lambda found, value: re.search(value, found, re.MULTILINE) is None,
    "some": lambda found, value: any(
        all(is_hit(pattern, item) for pattern in value) for item in found
    ),
    "none": lambda found, value: not any(is_hit(value, item) for item in found),
}


def find_fault(check: dict[str, Any], outcomes: list[Outcome]) -> str | None:
    """Return what came where the check does not hold."""
    if "any" in check:
        faults = [find_first_fault(checks, outcomes) for checks in check["any"]]
        return None if None in faults else " or ".join(map(str, faults))
    outcome = outcomes[check.get("command", -1)]
    found, holds = outcome.find(check["at"]), OPERATORS[check["op"]]
    if (
        found is None
        and check["op"] == "none"
        and check["at"].startswith("json:")
        and outcome.is_document()
    ):
        found = []
    try:
        if found is not None and holds(found, check["value"]):
            return None
    except (AttributeError, TypeError):  # what came has another form
        pass
    if check["op"] == "none" and found:
        found = [item for item in found if is_hit(check["value"], item)]
    came = f"nothing, exit {outcome.exit} {outcome.stderr}" if found is None else json.dumps(found)
    expected = shorten(json.dumps(check["value"]), 80)
    return f"{check['at']} is {shorten(came, 100)}, not {check['op']} {expected}"


def find_first_fault(checks: list[dict[str, Any]], outcomes: list[Outcome]) -> str | None:
    return next((fault for check in checks if (fault := find_fault(check, outcomes))), None)


def shorten(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def list_paths(pattern: str) -> list[str]:
    """Return the paths that a pattern with {A,B} stands for."""
    head, found, rest = pattern.partition("{")
    if not found:
        return [pattern]
    words, _, tail = rest.partition("}")
    return [path for word in words.split(",") for path in list_paths(f"{head}{word}{tail}")]


def unpack(folder: Path) -> None:
    """Write the files of input.txtar beside it, and remove it."""
    packed = folder / PACKED
    if not packed.is_file():
        return
    contents: dict[Path, list[str]] = {}
    lines: list[str] = []
    for line in packed.read_text().splitlines(keepends=True):
        head = HEAD.fullmatch(line.rstrip("\n"))
        if not head:
            lines.append(line)
            continue
        lines = []
        for path in (folder / name for name in list_paths(head[1])):
            path.parent.mkdir(parents=True, exist_ok=True)
            if head[2]:
                path.symlink_to(head[2])
            else:
                contents[path] = lines
    for path, lines in contents.items():
        path.write_text("".join(lines))
        if lines and lines[0].startswith("#!"):
            path.chmod(0o755)
    packed.unlink()


def list_command_lines(command: Any) -> list[tuple[list[str], str | None]]:
    """Return the command lines of a command, each with the file that takes what it prints."""
    if isinstance(command, list):
        return [(["toponaut", *command], None)]
    return [
        ([part.replace("%", word) for part in command["run"]], command["to"].replace("%", word))
        for word in command["for"]
    ]


def execute(arguments: list[str], folder: Path) -> Outcome:
    """Run one program in a folder."""
    done = subprocess.run(
        arguments,
        check=False,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT_S,
    )
    stdout, stderr = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    return Outcome(done.returncode, stdout, stderr, folder)


def run(command: Any, folder: Path, execute: Execute) -> Outcome:
    """Run a command; of several command lines return the outcome with the highest exit code."""
    outcomes = []
    for arguments, target in list_command_lines(command):
        outcome = execute(arguments, folder)
        if target:
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            (folder / target).write_text(outcome.stdout)
        outcomes.append(outcome)
    return max(outcomes, key=lambda outcome: outcome.exit)


def judge(folder: Path, execute: Execute = execute) -> str | None:
    """Run the case in this folder; return its first fault."""
    case = json.loads((folder / "case.json").read_text())
    with tempfile.TemporaryDirectory() as name:
        copy = shutil.copytree(folder, Path(name) / "case", symlinks=True)
        unpack(copy)
        try:
            outcomes = [run(command, copy, execute) for command in case["commands"]]
        except subprocess.TimeoutExpired:
            return f"no answer in {TIMEOUT_S} s"
        return find_first_fault(case["checks"], outcomes)


def find_cases(paths: list[Path]) -> list[Path]:
    return [
        file.parent
        for path in paths
        for file in (*path.glob("case.json"), *sorted(path.glob("*/case.json")))
    ]


def show(folder: Path, target: Path) -> None:
    unpack(shutil.copytree(folder, target, symlinks=True))
    for command in json.loads((folder / "case.json").read_text())["commands"]:
        for arguments, output in list_command_lines(command):
            print(shlex.join(arguments) + (f" > {shlex.quote(output)}" if output else ""))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument(
        "--unpack",
        type=Path,
        metavar="TARGET",
        help="write the inputs of one case to this new folder",
    )
    options = parser.parse_args()
    folders = find_cases(options.folders)
    if not folders or not shutil.which("toponaut"):
        print("toponaut is not on PATH" if folders else "no cases here", file=sys.stderr)
        return 2
    if options.unpack:
        show(folders[0], options.unpack)
        return 0
    os.environ["COLUMNS"] = "160"
    held = 0
    for folder in folders:
        fault = judge(folder)
        held += fault is None
        print(f"{folder.name}: " + ("holds" if fault is None else f"FALLS: {fault}"), flush=True)
    print(f"{held}/{len(folders)} cases")
    return 0 if held == len(folders) else 1


if __name__ == "__main__":
    sys.exit(main())
