"""How the zygote is started: which interpreter, with which environment, and what it may import."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Final

from synthgym.errors import SandboxError

_REQUIRED: Final = ("msgspec", "RestrictedPython")
"""What the zygote needs beside the standard library and `synthgym.sandbox`."""
# Stands in for `site`, whose .pth files run code, and for what would import gymnasium and numpy: the
# `__init__` of our packages, and the one exception that `synthgym.errors` derives from gymnasium's.
# The rest saves time, of which a zygote takes as much to start as an environment to be validated: no
# collections while everything that is made stays (`zygote.main` turns them on again), only the one
# module of RestrictedPython that is needed, and not what msgspec asks for as long as it is there.
BOOTSTRAP: Final = """
import gc, sys, types
gc.disable()
control, parent, package, restricted, *search = sys.argv[1:]
sys.path += search
sys.modules["typing_extensions"] = None
def stand_in(name, **attributes):
    module = sys.modules[name] = types.ModuleType(name)
    module.__dict__.update(attributes)
    return module
stand_in("synthgym", __path__=[package])
stand_in("synthgym.sandbox", __path__=[package + "/sandbox"])
stand_in("RestrictedPython", __path__=[restricted])
stand_in("gymnasium", error=stand_in("gymnasium.error", ResetNeeded=Exception))
from synthgym.sandbox.zygote import main
main(int(control), int(parent))
"""
ENVIRONMENT: Final = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def zygote_command(control_fd: int, bootstrap: str = BOOTSTRAP) -> list[str]:
    """Return the command line of a zygote.

    It asks for no site, no user folder, no script folder, and no bytecode to be written.
    """
    if not sys.executable:
        raise SandboxError("sys.executable is empty: the sandbox cannot start a Python interpreter")
    package = Path(__file__).resolve().parent.parent
    return [
        *(sys.executable, "-S", "-s", "-P", "-B", "-c", bootstrap),
        *(str(control_fd), str(os.getpid()), str(package), _package("RestrictedPython")),
        *dict.fromkeys(str(Path(_package(module)).parent) for module in _REQUIRED),
    ]


def _package(module: str) -> str:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise SandboxError(f"package {module!r} is not installed: run `pip install synthgym` again")
    return str(Path(spec.origin).resolve().parent)
