"""Settings of libraries that read them from the environment while they are loaded."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import Final

_DEFAULTS: Final = MappingProxyType(
    {
        # numpy: OpenBLAS starts a thread for each further processor, which takes half of the time
        # in which numpy is loaded. Nothing here uses linear algebra.
        "OPENBLAS_NUM_THREADS": "1",
        # pydantic reads the metadata of every installed package to find its plugins.
        "PYDANTIC_DISABLE_PLUGINS": "__all__",
    }
)


def set_library_defaults() -> None:
    """Set what the user has not set; call it before the libraries are loaded."""
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
