"""Writes the outputs as files, for a generator without a cluster.

Each output is one file under the name that its reader expects, in a folder of its own, and is
written only if it changed. Nothing else in these folders is touched.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

from generator.objects.outputs import Output, OutputType
from generator.outputs.catalog import Export
from generator.reconcile.output_outcomes import OutputOutcome, OutputsOutcome, RefusedWrite
from generator.reconcile.outputs import PublishRequest
from generator.reconcile.rendered import (
    KINDS,
    UNDECIDED,
    describe_left_out,
    list_tier_keys,
    render_output_file,
)
from generator.store.object_files import YAML_DUMPER, write_file
from topology.model.errors import ConfigError, TopologyError
from topology.model.tree import TopologyTree

FOLDER: Final = "outputs"
"""Below the folder of the store; each output has a folder with the name of its type."""


class FolderPublisher:
    """Keeps the outputs in a folder up to date."""

    def __init__(self, root: Path, *, namespace: str) -> None:
        """Read and write nothing yet.

        Args:
            root: the folder of the store.
            namespace: the namespace of the objects, except cluster-wide ones.
        """
        self._root = root / FOLDER
        self._namespace = namespace
        self._rendered: tuple[object, dict[OutputType, tuple[Export, str]]] = (None, {})
        """The tree and the outputs, and each output with its text."""

    def update(self, request: PublishRequest) -> OutputsOutcome:
        """Compare the files, and write what may be written."""
        outcomes = [self._update_output(output, request) for output in request.outputs]
        wanted = {output.type for output in request.outputs}
        outcomes += [self._remove(kind, request) for kind in KINDS if kind not in wanted]
        tree = request.tree
        keys = () if tree is None else list_tier_keys(tree, request.outputs)
        return OutputsOutcome(tuple(outcomes), keys, is_paused=not request.is_writing)

    def _update_output(self, output: Output, request: PublishRequest) -> OutputOutcome:
        outcome = OutputOutcome(output.type)
        if request.tree is None:
            return outcome._replace(problem=UNDECIDED, is_known=False)
        try:
            export, text = self._render(request.tree, output, request)
        except ConfigError as error:
            return outcome._replace(problem=str(error))
        outcome = outcome._replace(problem=describe_left_out(export))
        if export.is_empty:
            return outcome
        path = self._root / output.type / export.file_name
        is_current = _has_text(path, text)
        is_written = request.is_writing and not is_current
        try:
            if is_written:
                write_file(path, text)
        except TopologyError as error:
            refusal = RefusedWrite(str(path), str(error), is_conflict=False)
            return outcome._replace(refusals=(refusal,))
        is_current = is_current or is_written
        return outcome._replace(
            num_current=int(is_current),
            num_pending=int(not is_current),
            num_written=int(is_written),
        )

    def _render(
        self, tree: TopologyTree, output: Output, request: PublishRequest
    ) -> tuple[Export, str]:
        """Return an output and its text; it is rendered again only if the tree changed.

        Raises:
            ConfigError: the tree cannot be written in this format.
        """
        key = (request.tree, request.outputs)
        if self._rendered[0] != key:
            self._rendered = key, {}
        files = self._rendered[1]
        if output.type not in files:
            export = render_output_file(tree, output, request.outputs, namespace=self._namespace)
            files[output.type] = export, _render_text(export)
        return files[output.type]

    def _remove(self, kind: OutputType, request: PublishRequest) -> OutputOutcome:
        outcome = OutputOutcome(kind, is_removal=True)
        path = self._root / kind / kind.export_format.file_name
        try:
            if not request.is_writing:
                return outcome._replace(num_pending=int(path.is_file()))
            path.unlink()
        except FileNotFoundError:
            return outcome
        except OSError as error:
            refusal = RefusedWrite(str(path), str(error), is_conflict=False)
            return outcome._replace(refusals=(refusal,))
        return outcome


def _has_text(path: Path, text: str) -> bool:
    """Return whether a file, of any size, has this content."""
    try:
        return path.is_file() and path.read_text(encoding="utf-8") == text
    except (OSError, ValueError):
        return False


def _render_text(export: Export) -> str:
    if export.text is not None:
        return export.text
    return str(yaml.dump_all(export.documents, Dumper=YAML_DUMPER, sort_keys=False))
