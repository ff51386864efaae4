"""Settings of the interpreter, the C library, and libraries that read them from the environment.

A server must return free memory to the operating system and let RPC threads run: a round allocates
and frees arrays of megabytes in one thread, while other threads must answer calls within
milliseconds.
"""

from __future__ import annotations

import gc
import os
import sys
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
_SWITCH_S: Final = 0.0005
"""How long a thread keeps the interpreter while another waits for it. A call switches threads
several times; with the default of 5 ms it waited 20 ms for a running round."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of malloc.h
_OPTIONS: Final = ((_MMAP_THRESHOLD, 1 << 18), (_TRIM_THRESHOLD, 1 << 20), (_ARENA_MAX, 2))
"""glibc raises its thresholds when the first large array is freed, and then keeps the memory of
later arrays. Thresholds that are set explicitly do not change."""


def collect_garbage_rarely() -> None:
    """Let the garbage collector run only after many new objects.

    Facts and answers are many small immutable objects without cycles. At its default threshold the
    collector takes nearly half of the time to read 65k HCAs, and a third of a batch's time, and
    finds nothing.
    """
    gc.set_threshold(200_000, 20, 20)


def tune_for_server() -> None:
    """Set thread switching and malloc; without glibc's options, thread switching alone."""
    import ctypes  # noqa: PLC0415 - every command loads this file, and only servers need ctypes

    sys.setswitchinterval(_SWITCH_S)
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    for option, value in _OPTIONS:
        mallopt(option, value)


def freeze_gc() -> None:
    """Exempt all present objects from garbage collection; they live as long as the process."""
    gc.collect()
    gc.freeze()


def set_library_defaults() -> None:
    """Set what the user has not set; call it before the libraries are loaded."""
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
