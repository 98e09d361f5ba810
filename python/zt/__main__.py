"""The program ``zt``, as ``python -m zt`` and as the command that the wheel installs."""

from __future__ import annotations

import signal
import sys

from ._zt import _program


def main() -> int:
    """Runs the program with the arguments of this process, and returns its exit code."""
    # Ctrl-C ends the program as it ends any other, without a traceback of Python.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _program(["zt", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
