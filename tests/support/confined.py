"""Whether this machine's kernel can confine children of suites: tests that need it are skipped elsewhere."""

from __future__ import annotations

import pytest

from spade_loop.evaluation.suites.children import ConfinementError, check_confinement


def confines() -> bool:
    try:
        check_confinement()
    except ConfinementError:
        return False
    return True


needs_confinement = pytest.mark.skipif(
    not confines(), reason="needs a Linux kernel with seccomp and Landlock, on x86-64 or ARM64"
)
