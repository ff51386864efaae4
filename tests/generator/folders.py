"""A store in a folder, with the paths of its folders and what people write there."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from generator.objects.fabric import FabricDocument, check_tier_names
from generator.objects.outputs import check_outputs
from generator.objects.write_policy import APPROVED_PLAN_ANNOTATION
from generator.store.fabric_store import FabricStore
from generator.store.folder_store import FolderStore
from generator.store.object_files import render_json, write_object
from topology.model.errors import ConfigError, show
from topology.model.validation import describe_validation
from topology.reports.fabric_status import FABRIC_KIND, FABRIC_NAME, fabric_head


class StoreFolder(FabricStore):
    """The store of a server or a command in a folder."""

    def __init__(self, root: Path, nodes: Path | None = None) -> None:
        super().__init__(FolderStore(root, nodes))
        self.reports = root / "neighborreports"
        self.hypernodes = root / "hypernodes"
        self.fabrics = root / "fabrics"
        self.records = root / "treerecords"

    def write_fabric(self, document: dict[str, Any]) -> bool:
        """Write the Fabric object as a person does."""
        return write_object(self.fabrics, FABRIC_NAME, render_json(document))

    def read_fabric(self) -> dict[str, Any] | None:
        document = super().read_fabric()
        return None if document is None else dict(document)


def with_approval(document: dict[str, Any] | None, plan: str) -> dict[str, Any]:
    """Return a Fabric object with an approval, as kubectl annotate writes it."""
    approved = deepcopy(document) if document is not None else fabric_head()
    approved.setdefault("metadata", {}).setdefault("annotations", {})[APPROVED_PLAN_ANNOTATION] = (
        plan
    )
    return approved


def parse_fabric_document(document: object) -> FabricDocument:
    """Return the Fabric of a decoded object, with spec and status.

    Raises:
        ConfigError: another kind, version or name, or a field that is unknown or wrong; the
            message names each field.
    """
    if not isinstance(document, Mapping):
        raise ConfigError(f"expected a {FABRIC_KIND} object, got {type(document).__name__}")
    try:
        fabric = FabricDocument.model_validate(document)
    except ValidationError as error:
        raise ConfigError("; ".join(describe_validation(error))) from error
    if fabric.metadata.name != FABRIC_NAME:
        name = show(fabric.metadata.name)
        raise ConfigError(f"metadata.name: expected {FABRIC_NAME}, got '{name}'")
    _refuse_duplicates("spec.planes", [plane.name for plane in fabric.spec.planes])
    try:
        check_tier_names(fabric.spec.tier_names)
    except ConfigError as error:
        raise ConfigError(f"spec.tierNames: {error}") from error
    _refuse_duplicates("spec.sweepers", fabric.spec.sweepers)
    _refuse_duplicates("spec.outputs", [output.type for output in fabric.spec.outputs])
    try:
        check_outputs(fabric.spec.outputs)
    except ConfigError as error:
        raise ConfigError(f"spec.outputs: {error}") from error
    return fabric


def _refuse_duplicates(field: str, names: Sequence[str]) -> None:
    """Raise if a name is repeated, as the API server does."""
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise ConfigError(f"{field}: '{show(duplicate)}' is listed twice")
