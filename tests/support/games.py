"""Small snapshots to publish, and the places they go to."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from synthgym.registry import Snapshot, write_snapshot
from synthgym.spec import EnvRecord, SynthEnvSpec

NAMES = ("LedgerAudit", "DryDock", "SignalBox", "LoomDarn", "StarPlates", "MineSurvey")


def make_spec(name: str, version: int = 0, body: str = "", **notes: Any) -> SynthEnvSpec:
    """An environment that nobody plays."""
    source = f'"""Rules of {name}."""\n\n\nclass {name}Env:\n    max_turns = 9\n{body}'
    record = EnvRecord(source=source, entry=f"{name}Env", max_turns=9)
    told = {"title": f"The {name}", "skills": ("logical-deduction",), "license": "Apache-2.0"}
    return SynthEnvSpec(record=record, name=name, version=version, **{**told, **notes})


def write_games(
    folder: Path,
    version: str = "1.0.0",
    *,
    name: str = "games",
    layout: str = "folder",
    vectors: bool = False,
    specs: list[SynthEnvSpec] | None = None,
) -> Snapshot:
    """A snapshot of six environments with reports; each version has its own metrics."""
    specs = specs or [make_spec(each, metrics={"release": version}) for each in NAMES]
    found = {spec.digest: np.full(4, 0.5, np.float16) for spec in specs}
    return write_snapshot(
        folder,
        specs,
        name=name,
        version=version,
        layout=layout,
        reports={spec.digest: {"ok": True} for spec in specs},
        vectors={digest: {"small": vector} for digest, vector in found.items()}
        if vectors
        else None,
    )


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def http_server(folder: Path) -> Iterator[str]:
    """A plain web server of a folder: no listings are used, no ranges are known. Yields its URL."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
