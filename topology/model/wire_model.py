"""The base class of all documents on the wire. Imports pydantic, so only edges import it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class WireModel(BaseModel):
    """Frozen, camelCase on the wire, and strict: an unknown field is refused."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, populate_by_name=True
    )
