"""The pool that everything uses unless told otherwise."""

from __future__ import annotations

import atexit
import os
import threading

from synthgym.errors import ConfigError
from synthgym.sandbox.code_cache import default_folder
from synthgym.sandbox.isolation import IsolationReport
from synthgym.sandbox.pool import Pool


class _Default:
    """The default pool of this process."""

    lock = threading.Lock()
    pool: Pool | None = None
    pid = 0


def default_pool() -> Pool:
    """Return the pool that everything uses unless told otherwise.

    There is one a process, made when first asked for and closed at exit.
    """
    with _Default.lock:
        pool = _Default.pool
        if pool is None or pool.closed or _Default.pid != os.getpid():
            try:
                pool = Pool(code_cache=default_folder())
            except (ConfigError, OSError):  # no folder that is safe to use: memory alone
                pool = Pool()
            atexit.register(pool.close)
            _Default.pool, _Default.pid = pool, os.getpid()
        return pool


def isolation() -> IsolationReport:
    """Return what protects a worker on this machine, asked of a real one."""
    return default_pool().isolation()


def _after_fork() -> None:
    _Default.lock = threading.Lock()
    _Default.pid = os.getpid()  # the parent's pool has let go of its processes and serves here too


os.register_at_fork(after_in_child=_after_fork)
