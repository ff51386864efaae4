"""The base class of all documents on the wire. Imports pydantic, so only edges import it."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

DEFERRED: Final = ConfigDict(defer_build=True)
"""Builds a validator when it is first used: a command loads many models and uses few of them.
pydantic builds it under a lock, so threads can share a model. A default that is a model is made by
`model_construct`, which needs no validator."""


class WireModel(BaseModel):
    """Frozen, camelCase on the wire, and strict: an unknown field is refused."""

    model_config = ConfigDict(
        **DEFERRED, alias_generator=to_camel, extra="forbid", frozen=True, populate_by_name=True
    )


Name = Annotated[str, StringConstraints(min_length=1, max_length=253)]
"""Name of an object."""
Timestamp = Annotated[
    str, Field(min_length=20, max_length=40, json_schema_extra={"format": "date-time"})
]
"""RFC 3339."""


class ObjectMetadata(BaseModel):
    """The object's name; the fields that an API server adds are accepted and dropped."""

    model_config = ConfigDict(**DEFERRED, extra="ignore", frozen=True)

    name: Name
