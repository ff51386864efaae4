"""The embedded store: reports and HyperNodes as files of a folder, one object each.

`read_reports` and `read_hypernodes` also take any bare folder with whatever is in it: each file
or document that cannot be used costs itself and is named. `DirectoryStore` is the place that the
programs themselves write to, under `neighborreports/NAME.yaml` and `hypernodes/NAME.yaml`; every
write is whole or not there at all, and none happens when nothing changed.

Of reports with one name the newest by `status.observedAt` counts; where the times do not tell and
the contents differ, none does, because either may be wrong. The same goes for HyperNodes, which
have no time.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import yaml

from generator.objects.write_policy import parse_write_policy, with_approval, without_approval
from generator.objects.yaml_document import YamlDocument, parse_documents
from generator.outputs.hypernode import (
    HyperNode,
    is_object_name,
    parse_manifest,
    render_manifest,
)
from topology.model.errors import ConfigError, ParseError, ReportError, StoreError, show
from topology.reports.compact_reports import Report
from topology.reports.fabric_status import FABRIC_KIND, FABRIC_NAME
from topology.reports.neighbor_report import (
    API_VERSION,
    NeighborReport,
    parse_report,
    render_report,
)

REPORTS: Final = "neighborreports"
HYPERNODES: Final = "hypernodes"
FABRICS: Final = "fabrics"
MAX_FILE_BYTES: Final = 16 * 1024 * 1024
SUFFIXES: Final = (".yaml", ".yml", ".json")
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
# A link could lead out of the folder, and opening a pipe would wait for its writer.
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LAST_16_BIT: Final = "\uffff"
_UNPRINTABLE = re.compile(r"[^\n\x20-\x7e]")

ObjectT = TypeVar("Found", NeighborReport, HyperNode)


class StoredReports(NamedTuple):
    """The reports of a folder."""

    reports: tuple[Report, ...]
    """One per name, sorted by it."""
    problems: tuple[ParseError, ...]
    num_files: int
    """Files that were looked at, good or bad."""


class StoredHyperNodes(NamedTuple):
    """The HyperNodes of a folder."""

    hypernodes: tuple[HyperNode, ...]
    """One per name, sorted by it."""
    problems: tuple[ParseError, ...]
    num_files: int
    """Files that were looked at, good or bad."""


def read_reports(folder: Path) -> StoredReports:
    """Return every report in a folder's YAML and JSON files; the order of files is irrelevant.

    Raises:
        StoreError: the folder itself cannot be read.
    """
    problems: list[ParseError] = []
    files = _list_files(folder)
    rows = [
        (report.metadata.name, file, report)
        for file in files
        for report in _read_objects(file, parse_report, problems)
    ]
    chosen = _choose_one_per_name(rows, _find_newest, problems)
    return StoredReports(chosen, tuple(problems), len(files))


def read_hypernodes(folder: Path) -> StoredHyperNodes:
    """Return every HyperNode in a folder's YAML and JSON files, ours and foreign ones.

    Raises:
        StoreError: the folder itself cannot be read.
    """
    problems: list[ParseError] = []
    files = _list_files(folder)
    rows = [
        (found.name, file, found)
        for file in files
        for found in _read_objects(file, parse_manifest, problems)
    ]
    return StoredHyperNodes(
        _choose_one_per_name(rows, _find_agreed, problems), tuple(problems), len(files)
    )


def write_report(folder: Path, report: NeighborReport) -> bool:
    """Write a report into a folder; return False where the file has this content already.

    The file is YAML by name and JSON by form, which YAML includes: ten thousand reports are
    read in seconds, not minutes.

    Raises:
        StoreError: the name is not one of an object, or the folder cannot be written.
    """
    return _write_object(folder, report.metadata.name, _render_json(render_report(report)))


class DirectoryStore:
    """The folders that the programs write; a `HyperNodeStore` of plans."""

    def __init__(self, root: Path) -> None:
        """Keep the root; folders are made by the first write."""
        self.reports = root / REPORTS
        self.hypernodes = root / HYPERNODES
        self.fabrics = root / FABRICS

    def read_reports(self) -> StoredReports:
        """Return all reports, none before the first was written."""
        return read_reports(self.reports) if self.reports.exists() else StoredReports((), (), 0)

    def read_hypernodes(self) -> StoredHyperNodes:
        """Return all HyperNodes, none before the first was written.

        Only those in a file of their own name count: others could be neither replaced nor
        removed.
        """
        if not self.hypernodes.exists():
            return StoredHyperNodes((), (), 0)
        problems: list[ParseError] = []
        files = _list_files(self.hypernodes)
        kept = []
        for file in files:
            found = _read_objects(file, parse_manifest, problems)
            if [f"{one.name}.yaml" for one in found] == [file.name]:
                kept += found
            elif found:
                problem = "not counted: the store keeps one object per file, as NAME.yaml"
                problems.append(ParseError(problem, source=show(str(file), 1024)))
        return StoredHyperNodes(tuple(sorted(kept, key=_get_name)), tuple(problems), len(files))

    def write_report(self, report: NeighborReport) -> bool:
        """Write a report into the store, as `write_report` does.

        Raises:
            StoreError: the name is not one of an object, or the folder cannot be written.
        """
        return write_report(self.reports, report)

    def put(self, hypernode: HyperNode) -> bool:
        """Write a HyperNode; return False where the file has this content already.

        Raises:
            StoreError: the name is not one of an object, or the folder cannot be written.
        """
        manifest = render_manifest(hypernode)
        text: str = yaml.dump(manifest, Dumper=_DUMPER, sort_keys=False)
        return _write_object(self.hypernodes, hypernode.name, text)

    def read_fabric(self) -> dict[str, Any] | None:
        """Return the Fabric object that agents read, None before the first was written.

        Raises:
            StoreError: it cannot be read, or holds no object.
        """
        path = _build_path(self.fabrics, FABRIC_NAME)
        if not path.exists():
            return None
        raw = _read_file(path, show(str(path), 1024))
        found = (
            [raw] if isinstance(raw, ParseError) else list(parse_documents(raw, source=str(path)))
        )
        if (
            len(found) == 1
            and isinstance(found[0], YamlDocument)
            and isinstance(found[0].value, dict)
        ):
            return found[0].value
        why = next((str(one) for one in found if isinstance(one, ParseError)), "")
        raise StoreError(why or f"{path}: not one object")

    def write_fabric(self, document: dict[str, Any]) -> bool:
        """Write the Fabric object; return False where the file has this content already.

        Raises:
            StoreError: the folder cannot be written.
        """
        return _write_object(self.fabrics, FABRIC_NAME, _render_json(document))

    def write_status(self, status: Mapping[str, Any]) -> bool:
        """Replace the status of the Fabric object, as `write_fabric` does; the rest stays.

        Raises:
            StoreError: the object cannot be read, or the folder not be written.
        """
        head = {"apiVersion": API_VERSION, "kind": FABRIC_KIND, "metadata": {"name": FABRIC_NAME}}
        return self.write_fabric(head | (self.read_fabric() or {}) | {"status": dict(status)})

    def approve(self, plan: str) -> bool:
        """Let a plan be carried out although it is held, as `write_fabric` does.

        Raises:
            ConfigError: it is no hash of a plan.
            StoreError: the object cannot be read, or the folder not be written.
        """
        return self.write_fabric(with_approval(self.read_fabric(), plan))

    def consume_approval(self, plan: str) -> bool:
        """Take back the approval of a plan that was carried out; return whether there was one.

        Raises:
            StoreError: the object cannot be read, or the folder not be written.
        """
        document = self.read_fabric()
        if document is None or not parse_write_policy(document).is_approved(plan):
            return False
        return self.write_fabric(without_approval(document))

    def remove(self, name: str) -> bool:
        """Delete a HyperNode's file; return whether there was one.

        Raises:
            StoreError: the name is not one of an object, or the folder cannot be written.
        """
        return _delete_file(self.hypernodes, name)

    def withdraw_report(self, name: str) -> None:
        """Delete a report's file if there is one; raises as `remove` does."""
        _delete_file(self.reports, name)


def _list_files(folder: Path) -> list[Path]:
    """Return what has a name of ours, sorted; hidden files are half-written or not ours."""
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        raise StoreError(f"cannot read folder {show(str(folder))}: {error.strerror}") from error
    return [file for file in files if file.name.endswith(SUFFIXES) and file.name[0] != "."]


def _read_objects(
    file: Path, parse: Callable[[object], ObjectT], problems: list[ParseError]
) -> list[ObjectT]:
    """Return the objects of one file and add what is wrong with it to the problems."""
    source = show(str(file), 1024)
    raw = _read_file(file, source)
    if isinstance(raw, ParseError):
        problems.append(raw)
        return []
    objects: list[ObjectT] = []
    documents = list(parse_documents(raw, source=source))
    if not documents:
        problems.append(ParseError("holds nothing", source=source))
    for document in documents:
        if isinstance(document, ParseError):
            problems.append(document)
            continue
        try:
            objects.append(parse(document.value))
        except (ConfigError, ReportError) as error:
            problems.append(ParseError(str(error), source=source, line=document.line))
    return objects


def _read_file(file: Path, source: str) -> bytes | ParseError:
    try:
        if file.is_symlink() or not file.is_file():
            return ParseError("not a regular file", source=source)
        with open(os.open(file, _READ_FLAGS), "rb") as stream:  # noqa: PTH123 - needs flags
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        return ParseError(f"cannot be read: {error.strerror}", source=source)
    if len(raw) > MAX_FILE_BYTES:
        return ParseError(f"larger than {MAX_FILE_BYTES} bytes", source=source)
    return raw


def _choose_one_per_name(
    rows: list[tuple[str, Path, ObjectT]],
    choose: Callable[[list[ObjectT]], ObjectT | None],
    problems: list[ParseError],
) -> tuple[ObjectT, ...]:
    by_name: dict[str, list[tuple[Path, ObjectT]]] = {}
    for name, file, found in rows:
        by_name.setdefault(name, []).append((file, found))
    chosen = []
    for name in sorted(by_name):
        files, objects = zip(*by_name[name], strict=True)
        one = choose(list(objects))
        if one is not None:
            chosen.append(one)
        if len(objects) > 1:
            verdict = "none counts: they differ" if one is None else "one counts"
            others = ", ".join(dict.fromkeys(file.name for file in files[1:]))
            problem = f"{name} is also in {others}; {verdict}"
            problems.append(ParseError(show(problem), source=show(str(files[0]), 1024)))
    return tuple(chosen)


def _find_agreed(objects: list[HyperNode]) -> HyperNode | None:
    """Return the one that all are equal to."""
    return objects[0] if all(one == objects[0] for one in objects) else None


def _find_newest(objects: list[NeighborReport]) -> NeighborReport | None:
    """Return the report observed last, None where times do not tell and the facts differ."""
    times = [_parse_observed_at(one) for one in objects]
    newest = max(times)
    is_clear = times.count(newest) == 1 or all(one.spec == objects[0].spec for one in objects)
    return objects[times.index(newest)] if is_clear else None


def _parse_observed_at(report: NeighborReport) -> float:
    """Return seconds since 1970, minus infinity where the report does not tell."""
    try:
        observed = datetime.fromisoformat(report.status.observed_at or "")
    except ValueError:
        return float("-inf")
    return float("-inf") if observed.tzinfo is None else observed.timestamp()


def _get_name(found: HyperNode) -> str:
    return found.name


def _render_json(document: Mapping[str, Any]) -> str:
    """Return JSON that YAML reads alike, with nothing that a terminal would act on."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return _UNPRINTABLE.sub(_escape_character, text) + "\n"


def _escape_character(found: re.Match[str]) -> str:
    char = found.group()
    # YAML has no surrogate pairs, so what is beyond 16 bits stays as it is.
    return char if char.isprintable() or char > _LAST_16_BIT else f"\\u{ord(char):04x}"


def _build_path(folder: Path, name: str) -> Path:
    if not is_object_name(name):
        raise StoreError(f"not the name of an object: '{show(name)}'")
    return folder / f"{name}.yaml"


def _write_object(folder: Path, name: str, text: str) -> bool:
    path = _build_path(folder, name)
    raw = text.encode()
    if _read_file(path, str(path)) == raw:
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _replace_file(path, raw)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from error
    return True


def _delete_file(folder: Path, name: str) -> bool:
    """Delete an object's file; return whether there was one."""
    path = _build_path(folder, name)
    try:
        path.unlink()
        _sync_folder(folder)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"cannot remove {path}: {error.strerror}") from error
    return True


def _replace_file(path: Path, raw: bytes) -> None:
    """Put new content in place of a file; a crash leaves the old or the new one, never half."""
    number, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with open(number, "wb") as stream:  # noqa: PTH123 - an open descriptor
            stream.write(raw)
            stream.flush()
            os.fchmod(number, 0o644)
            os.fsync(number)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)
