"""The embedded store: reports and HyperNodes as files of a folder, one object each.

`read_reports` and `read_hypernodes` also read any other folder: each unusable file or document
becomes a problem that names it, and affects no other file. `DirectoryStore` is the store that the
programs themselves write, under `neighborreports/NAME.yaml` and `hypernodes/NAME.yaml`. Every write
is atomic, and nothing is written if nothing changed.

Of several reports with one name, the newest by `status.observedAt` is used. If the times are equal
or missing and the contents differ, none is used, because each of them may be wrong. The same holds
for HyperNodes, which have no time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from generator.objects.write_policy import parse_write_policy, with_approval, without_approval
from generator.objects.yaml_document import YamlDocument, parse_documents
from generator.outputs.hypernode import (
    HyperNode,
    parse_manifest,
    render_manifest,
)
from generator.store.base import StoredHyperNodes, StoredReports
from generator.store.object_files import (
    YAML_DUMPER,
    choose_one_per_name,
    delete_file,
    find_agreed,
    find_newest,
    hypernode_name,
    list_files,
    list_ignored_files,
    object_path,
    read_file,
    read_objects,
    render_json,
    write_object,
)
from topology.model.errors import ParseError, StoreError, show
from topology.reports.fabric_status import FABRIC_NAME, fabric_head
from topology.reports.neighbor_report import (
    NeighborReport,
    parse_report,
    render_report,
)

REPORTS: Final = "neighborreports"
HYPERNODES: Final = "hypernodes"
FABRICS: Final = "fabrics"


def read_reports(folder: Path) -> StoredReports:
    """Return every report in a folder's YAML and JSON files; the order of files is irrelevant.

    Raises:
        StoreError: the folder cannot be read.
    """
    files = list_files(folder)
    problems: list[ParseError] = [*list_ignored_files(folder)]
    rows = [
        (report.metadata.name, file, report)
        for file in files
        for report in read_objects(file, parse_report, problems)
    ]
    chosen = choose_one_per_name(rows, find_newest, problems)
    return StoredReports(chosen, tuple(problems), len(files))


def read_hypernodes(folder: Path) -> StoredHyperNodes:
    """Return every HyperNode in a folder's YAML and JSON files, ours and foreign ones.

    Raises:
        StoreError: the folder cannot be read.
    """
    problems: list[ParseError] = []
    files = list_files(folder)
    rows = [
        (hypernode.name, file, hypernode)
        for file in files
        for hypernode in read_objects(file, parse_manifest, problems)
    ]
    return StoredHyperNodes(
        choose_one_per_name(rows, find_agreed, problems), tuple(problems), len(files)
    )


def write_report(folder: Path, report: NeighborReport) -> bool:
    """Write a report into a folder; return False if the file has this content already.

    The file has a YAML name and JSON content, which is also YAML: ten thousand such reports are
    read in seconds, not minutes.

    Raises:
        StoreError: the name is not valid for an object, or the folder cannot be written.
    """
    return write_object(folder, report.metadata.name, render_json(render_report(report)))


class DirectoryStore:
    """The folders that the programs write; a `HyperNodeStore` for plans."""

    def __init__(self, root: Path) -> None:
        """Keep the root; the first write creates the folders."""
        self.reports = root / REPORTS
        self.hypernodes = root / HYPERNODES
        self.fabrics = root / FABRICS

    def read_reports(self) -> StoredReports:
        """Return all reports; empty before the first write."""
        return read_reports(self.reports) if self.reports.exists() else StoredReports((), (), 0)

    def read_hypernodes(self) -> StoredHyperNodes:
        """Return all HyperNodes; empty before the first write.

        Only a HyperNode in a file of its own name is used: others could not be replaced or removed.
        """
        if not self.hypernodes.exists():
            return StoredHyperNodes((), (), 0)
        problems: list[ParseError] = []
        files = list_files(self.hypernodes)
        used = []
        for file in files:
            hypernodes = read_objects(file, parse_manifest, problems)
            if [f"{hypernode.name}.yaml" for hypernode in hypernodes] == [file.name]:
                used += hypernodes
            elif hypernodes:
                problem = "ignored: the store keeps one object per file, as NAME.yaml"
                problems.append(ParseError(problem, source=show(str(file), 1024)))
        return StoredHyperNodes(
            tuple(sorted(used, key=hypernode_name)), tuple(problems), len(files)
        )

    def write_report(self, report: NeighborReport) -> bool:
        """Write a report into the store, as `write_report` does.

        Raises:
            StoreError: the name is not valid for an object, or the folder cannot be written.
        """
        return write_report(self.reports, report)

    def put(self, hypernode: HyperNode) -> bool:
        """Write a HyperNode; return False if the file has this content already.

        Raises:
            StoreError: the name is not valid for an object, or the folder cannot be written.
        """
        manifest = render_manifest(hypernode)
        text: str = yaml.dump(manifest, Dumper=YAML_DUMPER, sort_keys=False)
        return write_object(self.hypernodes, hypernode.name, text)

    def read_fabric(self) -> dict[str, Any] | None:
        """Return the Fabric object that agents read; None before the first write.

        Raises:
            StoreError: the file cannot be read, or does not hold exactly one object.
        """
        path = object_path(self.fabrics, FABRIC_NAME)
        if not path.exists():
            return None
        raw = read_file(path, show(str(path), 1024))
        documents = (
            [raw] if isinstance(raw, ParseError) else list(parse_documents(raw, source=str(path)))
        )
        if (
            len(documents) == 1
            and isinstance(documents[0], YamlDocument)
            and isinstance(documents[0].value, dict)
        ):
            return documents[0].value
        reason = next((str(item) for item in documents if isinstance(item, ParseError)), "")
        raise StoreError(reason or f"{path}: not exactly one object")

    def write_fabric(self, document: dict[str, Any]) -> bool:
        """Write the Fabric object; return False if the file has this content already.

        Raises:
            StoreError: the folder cannot be written.
        """
        return write_object(self.fabrics, FABRIC_NAME, render_json(document))

    def write_status(self, status: Mapping[str, Any]) -> bool:
        """Replace the status of the Fabric object, and keep the rest; returns as `write_fabric`.

        Raises:
            StoreError: the object cannot be read, or the folder cannot be written.
        """
        return self.write_fabric(
            fabric_head() | (self.read_fabric() or {}) | {"status": dict(status)}
        )

    def approve(self, plan: str) -> bool:
        """Approve a held plan; returns as `write_fabric` does.

        Raises:
            ConfigError: the text is not the hash of a plan.
            StoreError: the object cannot be read, or the folder cannot be written.
        """
        return self.write_fabric(with_approval(self.read_fabric(), plan))

    def consume_approval(self, plan: str) -> bool:
        """Remove the approval of a plan that was applied; return whether there was one.

        Raises:
            StoreError: the object cannot be read, or the folder cannot be written.
        """
        document = self.read_fabric()
        if document is None or not parse_write_policy(document).is_approved(plan):
            return False
        return self.write_fabric(without_approval(document))

    def remove(self, name: str) -> bool:
        """Delete a HyperNode's file; return whether it existed.

        Raises:
            StoreError: the name is not valid for an object, or the folder cannot be written.
        """
        return delete_file(self.hypernodes, name)

    def withdraw_report(self, name: str) -> None:
        """Delete a report's file if it exists; raises as `remove` does."""
        delete_file(self.reports, name)
