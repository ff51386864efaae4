"""Importing this module lets SIGINT end the program without a traceback. Import it first.

It loads nothing, so that it takes effect at once; `runtime.program` replaces the action later.
"""

import _signal

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
