"""Snapshots as data sets of the Hugging Face Hub: one repository for a name, a tag for each version.

Needs the extra `hub`. The token, the endpoint and `HF_HUB_OFFLINE` are those of `huggingface_hub`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from synthgym.errors import MissingExtraError, SnapshotError, SynthGymError
from synthgym.publishing.card import dataset_card
from synthgym.publishing.croissant import croissant_bytes
from synthgym.publishing.leaks import check_leaks, find_text_leaks
from synthgym.publishing.publish import Publishing, check_publishable
from synthgym.publishing.remotes import FsspecRemote
from synthgym.publishing.sources import FolderSource
from synthgym.registry.files import Files, open_files, read_file
from synthgym.registry.layout import (
    CROISSANT,
    MANIFEST,
    MAX_MANIFEST_BYTES,
    README,
    SIGNATURES,
    FileRef,
)
from synthgym.registry.snapshot import Snapshot

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
    from huggingface_hub.hf_api import RepoFile

COMMIT_FILES: Final = 50
"""Files of one commit, at most, while nothing that readers use is replaced."""
_KEPT: Final = (".gitattributes", "README.md")
_MAX_CARD_BYTES: Final = 1 << 20

Content = Callable[[], bytes]
"""Reads a file when its turn has come: no more than one commit is in memory at once."""


class HubSource(FolderSource):
    """A snapshot in a data set repository, at one commit, which is found out first."""

    def __init__(self, repository: str, revision: str = "", *, endpoint: str | None = None) -> None:
        api = _api(endpoint)
        with _boundary(f"hf://{repository}"):
            info = api.dataset_info(repository, revision=revision or None)
        self.commit: str = info.sha or ""
        self._url = f"hf://{repository}@{self.commit}"
        options = {"endpoint": endpoint} if endpoint else {}
        super().__init__(FsspecRemote(f"hf://datasets/{repository}@{self.commit}", options))

    @property
    def url(self) -> str:
        """The repository at its commit."""
        return self._url


@dataclass(frozen=True, slots=True, kw_only=True)
class OnHub:
    """A snapshot that is on the Hub now."""

    repository: str
    commit: str
    tag: str
    """The version."""
    uploaded: int
    """Files that were not there already."""


def publish_to_hub(
    place: str | Path,
    repository: str,
    publishing: Publishing | None = None,
    *,
    private: bool = False,
    endpoint: str | None = None,
) -> OnHub:
    """Put a snapshot into a data set repository, which is made when it is not there, and tag its version.

    Files that are new go first, at most 50 a commit. What replaces or removes a file, and the manifest,
    are one last commit, so that the default branch holds the old snapshot or the new one. Each commit
    names its parent: `SnapshotError` when somebody else has committed meanwhile. What is there already
    is not sent again. The snapshot is checked as `publish` does.
    """
    publishing = publishing or Publishing()
    snapshot, files = Snapshot.open(place), open_files(Path(place))
    check_publishable(snapshot, files, publishing)
    beside = _beside(snapshot, files, repository, publishing)
    api = _api(endpoint)
    tag = snapshot.version
    with _boundary(f"hf://{repository}"):
        api.create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
        commit = _tagged(api, repository, tag, beside[MANIFEST])
        if commit is not None:  # and a later version on the default branch stays there
            return OnHub(repository=repository, commit=commit, tag=tag, uploaded=0)
        upload = _Upload(api, repository, f"{snapshot.name} {snapshot.version}")
        upload.run(files, snapshot.manifest.files, beside)
        api.create_tag(repository, tag=tag, revision=upload.parent, repo_type="dataset")
    return OnHub(repository=repository, commit=upload.parent, tag=tag, uploaded=upload.uploaded)


class _Upload:
    """Commits, one on top of the other."""

    def __init__(self, api: HfApi, repository: str, title: str) -> None:
        self._api = api
        self._repository = repository
        self._title = title
        self.parent: str = api.dataset_info(repository).sha or ""
        self.uploaded = 0

    def run(self, files: Files, refs: Sequence[FileRef], beside: dict[str, bytes]) -> None:
        """Bring the repository to hold exactly these files, and those that it keeps."""
        there = self._there()
        wanted: dict[str, Content] = {ref.path: _reading(files, ref) for ref in refs}
        wanted |= {path: _giving(data) for path, data in beside.items()}
        digests = {ref.path: ref.sha256 for ref in refs}
        changed = [
            p for p in wanted if p not in there or not _same(there[p], wanted[p], digests.get(p))
        ]
        first = sorted(path for path in changed if path not in there and path not in beside)
        last = sorted(path for path in changed if path in there or path in beside)
        gone = sorted(there.keys() - wanted.keys() - {*_KEPT})
        for start in range(0, len(first), COMMIT_FILES):
            self._commit(self._adding(first[start : start + COMMIT_FILES], wanted), "files")
        if last or gone:
            self._commit([*self._adding(last, wanted), *_deleting(gone)], "manifest")

    def _there(self) -> dict[str, RepoFile]:
        from huggingface_hub.hf_api import RepoFile

        tree = self._api.list_repo_tree(
            self._repository, recursive=True, revision=self.parent, repo_type="dataset"
        )
        return {item.path: item for item in tree if isinstance(item, RepoFile)}

    def _adding(self, paths: Sequence[str], wanted: dict[str, Content]) -> list[CommitOperationAdd]:
        from huggingface_hub import CommitOperationAdd

        self.uploaded += len(paths)
        return [CommitOperationAdd(path, wanted[path]()) for path in paths]

    def _commit(
        self, operations: Sequence[CommitOperationAdd | CommitOperationDelete], what: str
    ) -> None:
        made = self._api.create_commit(
            self._repository,
            operations,
            commit_message=f"{self._title}: {what}",
            repo_type="dataset",
            parent_commit=self.parent,
        )
        self.parent = made.oid


def _deleting(paths: Sequence[str]) -> list[CommitOperationDelete]:
    from huggingface_hub import CommitOperationDelete

    return [CommitOperationDelete(path) for path in paths]


def _beside(
    snapshot: Snapshot, files: Files, repository: str, publishing: Publishing
) -> dict[str, bytes]:
    """The manifest and what lies beside it on the Hub. A card that its owner has written stays."""
    manifest = snapshot.manifest.to_bytes()
    card = b""
    if README in files.paths():
        card = read_file(files, README, _MAX_CARD_BYTES)
    if not card.startswith(b"---\n"):  # a card of the Hub begins with its metadata
        card = dataset_card(snapshot, f"hf://{repository}").encode()
    check_leaks(find_text_leaks(card.decode("utf-8", "replace"), README), publishing.allow_leaks)
    found = {
        MANIFEST: manifest,
        README: card,
        CROISSANT: croissant_bytes(
            snapshot.manifest, f"https://huggingface.co/datasets/{repository}"
        ),
    }
    signatures = ""
    if SIGNATURES in files.paths():
        signatures = read_file(files, SIGNATURES, MAX_MANIFEST_BYTES).decode("utf-8", "replace")
    if publishing.sign is not None:
        signatures += publishing.sign(manifest)
    return found | ({SIGNATURES: signatures.encode()} if signatures else {})


def _tagged(api: HfApi, repository: str, tag: str, manifest: bytes) -> str | None:
    """The commit that has this tag, or None; `SnapshotError` when it holds another manifest."""
    refs = api.list_repo_refs(repository, repo_type="dataset")
    commit = next((ref.target_commit for ref in refs.tags if ref.name == tag), None)
    if commit is None:
        return None
    there = HubSource(repository, commit, endpoint=api.endpoint).manifest()
    if there != manifest:
        raise SnapshotError(
            f"hf://{repository}@{tag} holds another manifest: give the snapshot the next version"
        )
    return commit


def _reading(files: Files, ref: FileRef) -> Content:
    return lambda: read_file(files, ref.path, ref.size)


def _giving(data: bytes) -> Content:
    return lambda: data


def _same(there: RepoFile, wanted: Content, sha256: str | None) -> bool:
    """Whether the Hub has these bytes: by SHA-256 for large files, as a git blob for small ones."""
    if there.lfs is not None:
        known = sha256 or "sha256:" + hashlib.sha256(wanted()).hexdigest()
        return known == f"sha256:{there.lfs.sha256}"
    data = wanted()
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False)
    return blob.hexdigest() == there.blob_id


def _api(endpoint: str | None) -> HfApi:
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise MissingExtraError(
            "the Hugging Face Hub needs huggingface_hub: pip install 'synthgym[hub]'"
        ) from error
    return HfApi(endpoint=endpoint, library_name="synthgym")


@contextmanager
def _boundary(what: str) -> Iterator[None]:
    """What the Hub says becomes ours, with what to do about it."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except SynthGymError:
        raise
    except GatedRepoError as error:
        raise SnapshotError(f"{what} is gated: ask for access on its page, and log in") from error
    except RepositoryNotFoundError as error:
        raise SnapshotError(
            f"{what} is not there, or is private: log in with `hf auth login`"
        ) from error
    except RevisionNotFoundError as error:
        raise SnapshotError(f"{what} has no such revision") from error
    except OfflineModeIsEnabled as error:
        raise SnapshotError(f"{what}: HF_HUB_OFFLINE forbids the network") from error
    except HFValidationError as error:
        raise SnapshotError(f"{what} cannot be the name of a repository: {error}") from error
    except Exception as error:
        if isinstance(error, HfHubHTTPError) and error.response.status_code == 412:
            raise SnapshotError(
                f"{what}: somebody else has committed meanwhile; try again"
            ) from error
        raise SnapshotError(f"{what}: {type(error).__name__}: {error}") from error
