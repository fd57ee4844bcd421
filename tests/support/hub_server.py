"""A small stand-in for the Hugging Face Hub: the few endpoints that data set repositories need.

Commits are kept whole, by their number, so that what a reader sees at each of them can be looked at.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

Tree = dict[str, bytes]


class Hub:
    """Repositories, commits, tags, and large files by their SHA-256."""

    def __init__(self) -> None:
        self.url = ""
        self.trees: dict[str, dict[str, Tree]] = {}
        """By repository and commit, in the order of the commits."""
        self.tags: dict[str, dict[str, str]] = {}
        self.large: dict[str, bytes] = {}
        self.commit_sizes: list[int] = []
        """Files and deletions of each commit."""
        self.fail_at_commit: int | None = None
        """The commit, counted over the life of the server, that is refused as by a server error."""
        self.requests: list[str] = []

    def head(self, repository: str) -> str:
        return next(reversed(self.trees[repository]))

    def resolve(self, repository: str, revision: str) -> str | None:
        commits = self.trees.get(repository, {})
        if revision == "main" and commits:
            return self.head(repository)
        if revision in commits:
            return revision
        return self.tags.get(repository, {}).get(revision)

    def commit(self, repository: str, tree: Tree) -> str:
        number = sum(len(commits) for commits in self.trees.values())
        oid = hashlib.sha1(f"{repository} {number}".encode()).hexdigest()
        self.trees[repository][oid] = tree
        return oid

    def is_large(self, path: str) -> bool:
        return path.endswith((".parquet", ".safetensors"))

    def file(self, path: str, data: bytes) -> dict[str, Any]:
        found: dict[str, Any] = {
            "type": "file",
            "path": path,
            "size": len(data),
            "oid": hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest(),
        }
        if self.is_large(path):
            found["lfs"] = {
                "oid": hashlib.sha256(data).hexdigest(),
                "size": len(data),
                "pointerSize": 130,
            }
        return found


class _Handler(http.server.BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._serve()

    def do_HEAD(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append(f"{self.command} {self.path}")
        for method, pattern, answer in _ROUTES:
            match = re.fullmatch(pattern, path)
            if match is not None and self.command in method.split():
                answer(self, body, **match.groupdict())
                return
        self._json({"error": f"no such endpoint: {self.command} {self.path}"}, 404)

    def _json(self, value: Any, status: int = 200, **headers: str) -> None:
        self._bytes(
            json.dumps(value).encode(), status, headers | {"Content-Type": "application/json"}
        )

    def _bytes(self, data: bytes, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _absent(self, code: str) -> None:
        self._json({"error": code}, 404, **{"X-Error-Code": code, "X-Error-Message": code})

    def _tree(self, repo: str, rev: str) -> tuple[str, Tree] | None:
        if repo not in self.hub.trees:
            self._absent("RepoNotFound")
            return None
        oid = self.hub.resolve(repo, rev)
        if oid is None:
            self._absent("RevisionNotFound")
            return None
        return oid, self.hub.trees[repo][oid]

    def create(self, body: bytes) -> None:
        raw = json.loads(body)
        repository = (
            f"{raw['organization']}/{raw['name']}" if raw.get("organization") else raw["name"]
        )
        if repository in self.hub.trees:
            self._json({"error": "exists", "url": f"{self.hub.url}/datasets/{repository}"}, 409)
            return
        self.hub.trees[repository] = {}
        self.hub.tags[repository] = {}
        self.hub.commit(repository, {".gitattributes": b"*.parquet filter=lfs\n"})
        self._json({"url": f"{self.hub.url}/datasets/{repository}", "name": repository, "id": "1"})

    def info(self, body: bytes, repo: str, rev: str | None = None) -> None:
        found = self._tree(repo, rev or "main")
        if found is not None:
            oid, tree = found
            siblings = [{"rfilename": path} for path in tree]
            self._json({"id": repo, "sha": oid, "siblings": siblings, "private": False, "tags": []})

    def refs(self, body: bytes, repo: str) -> None:
        if repo not in self.hub.trees:
            self._absent("RepoNotFound")
            return
        tags = [
            {"name": name, "ref": f"refs/tags/{name}", "targetCommit": oid}
            for name, oid in self.hub.tags[repo].items()
        ]
        head = {"name": "main", "ref": "refs/heads/main", "targetCommit": self.hub.head(repo)}
        self._json({"branches": [head], "converts": [], "tags": tags})

    def tree(self, body: bytes, repo: str, rev: str) -> None:
        found = self._tree(repo, rev)
        if found is not None:
            self._json([self.hub.file(path, data) for path, data in sorted(found[1].items())])

    def preupload(self, body: bytes, repo: str, rev: str) -> None:
        files = [
            {
                "path": item["path"],
                "uploadMode": "lfs" if self.hub.is_large(item["path"]) else "regular",
                "shouldIgnore": False,
            }
            for item in json.loads(body)["files"]
        ]
        self._json({"files": files})

    def batch(self, body: bytes, repo: str) -> None:
        objects = []
        for item in json.loads(body)["objects"]:
            href = f"{self.hub.url}/large/{item['oid']}"
            actions = (
                {} if item["oid"] in self.hub.large else {"actions": {"upload": {"href": href}}}
            )
            objects.append({"oid": item["oid"], "size": item["size"], **actions})
        self._json({"transfer": "basic", "objects": objects})

    def put_large(self, body: bytes, oid: str) -> None:
        assert hashlib.sha256(body).hexdigest() == oid
        self.hub.large[oid] = body
        self._json({})

    def commit(self, body: bytes, repo: str, rev: str) -> None:
        operations = [json.loads(line) for line in body.splitlines()]
        header = operations.pop(0)["value"]
        if self.hub.fail_at_commit == len(self.hub.commit_sizes):
            self.hub.fail_at_commit = None
            self._json({"error": "the server is on fire"}, 500)
            return
        if header.get("parentCommit") not in (None, self.hub.head(repo)):
            self._json({"error": "A commit has happened since. Please refresh and try again."}, 412)
            return
        tree = dict(self.hub.trees[repo][self.hub.head(repo)])
        for operation in operations:
            value = operation["value"]
            if operation["key"] == "file":
                tree[value["path"]] = base64.b64decode(value["content"])
            elif operation["key"] == "lfsFile":
                tree[value["path"]] = self.hub.large[value["oid"]]
            else:
                assert operation["key"] == "deletedFile", operation
                del tree[value["path"]]
        self.hub.commit_sizes.append(len(operations))
        oid = self.hub.commit(repo, tree)
        self._json({"commitUrl": f"{self.hub.url}/datasets/{repo}/commit/{oid}", "commitOid": oid})

    def tag(self, body: bytes, repo: str, rev: str) -> None:
        name = json.loads(body)["tag"]
        if name in self.hub.tags[repo]:
            self._json({"error": "exists"}, 409)
            return
        oid = self.hub.resolve(repo, rev)
        assert oid is not None
        self.hub.tags[repo][name] = oid
        self._json({})

    def validate(self, body: bytes) -> None:
        assert json.loads(body)["repoType"] == "dataset"
        self._json({"errors": [], "warnings": []})

    def file(self, body: bytes, repo: str, rev: str, path: str) -> None:
        found = self._tree(repo, rev)
        if found is None:
            return
        oid, tree = found
        if path not in tree:
            self._absent("EntryNotFound")
            return
        data, status = tree[path], 200
        headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Repo-Commit": oid}
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if asked:
            start, end = int(asked[1]), int(asked[2] or len(data) - 1)
            headers["Content-Range"] = f"bytes {start}-{min(end, len(data) - 1)}/{len(data)}"
            data, status = data[start : end + 1], 206
        self._bytes(data, status, headers)


_REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"
_API = rf"/api/datasets/{_REPO}"
_ROUTES = (
    ("POST", r"/api/repos/create", _Handler.create),
    ("POST", r"/api/validate-yaml", _Handler.validate),
    ("GET", rf"{_API}/refs", _Handler.refs),
    ("GET", rf"{_API}/tree/(?P<rev>[^/]+)", _Handler.tree),
    ("POST", rf"{_API}/preupload/(?P<rev>[^/]+)", _Handler.preupload),
    ("POST", rf"{_API}/commit/(?P<rev>[^/]+)", _Handler.commit),
    ("POST", rf"{_API}/tag/(?P<rev>[^/]+)", _Handler.tag),
    ("GET", rf"{_API}/revision/(?P<rev>[^/]+)", _Handler.info),
    ("GET", _API, _Handler.info),
    ("POST", rf"/datasets/{_REPO}\.git/info/lfs/objects/batch", _Handler.batch),
    ("PUT", r"/large/(?P<oid>[0-9a-f]{64})", _Handler.put_large),
    ("GET HEAD", rf"/datasets/{_REPO}/resolve/(?P<rev>[^/]+)/(?P<path>.+)", _Handler.file),
)


@contextmanager
def hub_server() -> Iterator[Hub]:
    """Run a hub of one's own."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
