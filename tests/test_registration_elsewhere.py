"""Registration where the snapshot comes from elsewhere: a registry, or a package that is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec

from synthgym.errors import ConfigError, SnapshotError
from synthgym.publishing import publish
from synthgym.registration import env_spec, register_snapshot
from synthgym.registry import Snapshot, write_snapshot
from synthgym.spec import EnvRecord, SynthEnvSpec

DATA = Path(__file__).parent / "data"
LOCKER = (DATA / "good_envs" / "locker.py").read_text()


def locker(name: str, max_turns: int = 8) -> SynthEnvSpec:
    record = EnvRecord(source=LOCKER, entry="LockerEnv", max_turns=max_turns, requires=("random",))
    return SynthEnvSpec(record=record, name=name, title="A locker")


def run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def registry() -> Iterator[dict[str, EnvSpec]]:
    """Gymnasium's registry, put back afterwards."""
    before = dict(gymnasium.registry)
    yield gymnasium.registry
    gymnasium.registry.clear()
    gymnasium.registry.update(before)


# --- references ---


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    """`lockers` 1.0.0 in a registry on this machine, which is the only one configured."""
    for name in ("SYNTHGYM_CACHE", "SYNTHGYM_STATE", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    for name in ("SYNTHGYM_OFFLINE", "SYNTHGYM_ALLOWED_SIGNERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SYNTHGYM_REMOTES", str(tmp_path / "remote"))
    monkeypatch.chdir(tmp_path)
    made = write_snapshot(
        tmp_path / "mine", [locker("Pulled")], name="lockers", version="1.0.0", layout="shards"
    )
    publish(made.path, tmp_path / "remote")
    return made


MAKE = """
import sys
import gymnasium
from gymnasium.envs.registration import EnvSpec
env = gymnasium.make(EnvSpec.from_json(sys.argv[1]))
print(env.reset(seed=4)[0])
env.close()
"""


@pytest.mark.parametrize("reference", ["lockers", "lockers@1.0.0", "lockers>=1,<2"])
def test_a_reference_is_pinned_to_content_and_made_offline_by_another_process(
    registry: dict[str, EnvSpec], published: Snapshot, tmp_path: Path, reference: str
) -> None:
    assert register_snapshot(reference) == ["synthgym/Pulled-v0"]
    known = registry["synthgym/Pulled-v0"]
    digest = locker("Pulled").digest
    pinned = f"lockers@{published.digest}"
    assert known.kwargs == {"digest": digest, "snapshot": pinned}
    assert env_spec(reference, digest).kwargs == known.kwargs
    env = gymnasium.make(known)
    expected = env.reset(seed=4)[0]
    env.close()
    (tmp_path / "remote").rename(tmp_path / "gone")
    done = run(MAKE, known.to_json(), SYNTHGYM_OFFLINE="1", SYNTHGYM_STATE=str(tmp_path / "other"))
    assert done.stdout.strip() == expected


def test_another_machine_pulls_what_the_kwargs_name(
    registry: dict[str, EnvSpec], published: Snapshot, tmp_path: Path
) -> None:
    text = env_spec("lockers", "Pulled-v0").to_json()
    elsewhere = {"SYNTHGYM_CACHE": str(tmp_path / "b"), "SYNTHGYM_STATE": str(tmp_path / "c")}
    assert run(MAKE, text, **elsewhere).stdout == run(MAKE, text).stdout
    assert (tmp_path / "b").is_dir()


def test_a_newer_release_does_not_change_what_was_pinned(
    registry: dict[str, EnvSpec], published: Snapshot, tmp_path: Path
) -> None:
    old = env_spec("lockers", "Pulled-v0")
    newer = write_snapshot(
        tmp_path / "newer", [locker("Other")], name="lockers", version="1.1.0", layout="shards"
    )
    publish(newer.path, tmp_path / "remote")
    assert register_snapshot("lockers") == ["synthgym/Other-v0"]
    assert old.kwargs["snapshot"] == f"lockers@{published.digest}"
    env = gymnasium.make(old)
    env.close()


def test_spawned_workers_make_what_was_pulled(
    registry: dict[str, EnvSpec], published: Snapshot
) -> None:
    (env_id,) = register_snapshot("lockers@1.0.0")
    envs = gymnasium.make_vec(
        env_id,
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"shared_memory": False, "context": "spawn"},
    )
    plain = gymnasium.make(env_id)
    observations, _ = envs.reset(seed=1)
    assert observations == tuple(plain.reset(seed=1 + n)[0] for n in range(2))
    plain.close()
    envs.close()


def test_a_reference_that_comes_to_nothing_registers_nothing(
    registry: dict[str, EnvSpec], published: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dict(registry)
    with pytest.raises(SnapshotError, match="did you mean 'lockers'"):
        register_snapshot("locker")
    with pytest.raises(SnapshotError, match=r"2\.0"):
        register_snapshot("lockers@2.0")
    monkeypatch.delenv("SYNTHGYM_REMOTES")
    with pytest.raises(ConfigError, match="none is configured"):
        register_snapshot("lockers")
    with pytest.raises(ConfigError, match="not a reference to a snapshot"):
        register_snapshot("./no/such/folder")
    assert registry == before


# --- packages that are installed ---


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages: `theirs` offers a snapshot beside its code."""
    package = tmp_path / "site" / "theirs"
    write_snapshot(
        package / "snapshot", [locker("Theirs")], name="theirs", version="1.0.0", layout="folder"
    )
    (package / "__init__.py").write_text("")
    offer(package.parent, "theirs", "theirs = theirs\n")
    return package.parent


def offer(site: Path, name: str, lines: str) -> None:
    """What an installer leaves of a distribution with entry points of our group."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[synthgym.snapshots]\n{lines}")


IMPORT = """
import json, sys, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import synthgym
import gymnasium
env = gymnasium.make("synthgym/SignalBox-v0")  # the bundled ones are there, whatever is broken
env.close()
print(json.dumps({
    "ids": sorted(i for i, s in gymnasium.registry.items() if "snapshot" in s.kwargs),
    "warned": [f"{w.category.__name__}: {w.message}" for w in caught],
    "loaded": [name for name in sys.argv[1:] if name in sys.modules],
}))
"""


def imported(site: Path, *modules: str) -> dict[str, list[str]]:
    """What `import synthgym` comes to where these packages are installed."""
    done = run(IMPORT, *modules, PYTHONPATH=str(site))
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def both_ids(spec: SynthEnvSpec) -> list[str]:
    return sorted((spec.env_id, spec.pinned_id))


def test_a_package_with_a_folder_named_snapshot_is_registered(site: Path) -> None:
    found = imported(site)
    assert found["ids"] == both_ids(locker("Theirs"))
    assert found["warned"] == []


def test_importing_us_does_not_import_what_is_not_needed(site: Path) -> None:
    heavy = ["pyarrow", "safetensors", "cryptography", "synthgym.publishing"]
    assert imported(site, *heavy)["loaded"] == []


def test_a_path_and_a_function_that_returns_one_are_registered_too(site: Path) -> None:
    for name in ("ByPath", "ByCall"):
        write_snapshot(site / name, [locker(name)], name=name, version="1", layout="shards")
    (site / "places.py").write_text(
        "from pathlib import Path\n"
        "PATH = str(Path(__file__).parent / 'ByPath')\n"
        "def call():\n    return Path(__file__).parent / 'ByCall'\n"
    )
    offer(site, "places", "path = places:PATH\ncall = places:call\n")
    found = imported(site)
    specs = (locker(name) for name in ("ByCall", "ByPath", "Theirs"))
    assert found["ids"] == sorted(env_id for spec in specs for env_id in both_ids(spec))
    assert found["warned"] == []


BROKEN = {
    "no such module": ("nowhere_at_all", "nowhere_at_all"),
    "no such name": ("theirs:NOTHING", "NOTHING"),
    "a function that fails": ("broken:fail", "no luck"),
    "a package without the folder": ("empty", "is not a snapshot"),
    "a module that is no package": ("broken", "__path__"),
    "a damaged snapshot": ("broken:DAMAGED", "manifest.json"),
    "an id that is taken": ("broken:TAKEN", "already stands for"),
}


@pytest.mark.parametrize(("value", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_package_is_a_warning_and_nothing_else_breaks(
    site: Path, value: str, message: str
) -> None:
    taken = locker("Theirs", max_turns=9)
    write_snapshot(site / "taken", [taken], name="taken", version="1", layout="folder")
    (site / "damaged").mkdir()
    (site / "damaged" / "manifest.json").write_text("{")
    (site / "empty").mkdir()
    (site / "empty" / "__init__.py").write_text("")
    (site / "broken.py").write_text(
        "from pathlib import Path\n"
        "TAKEN = Path(__file__).parent / 'taken'\n"
        "DAMAGED = Path(__file__).parent / 'damaged'\n"
        "def fail():\n    raise OSError('no luck')\n"
    )
    offer(site, "zbroken", f"broken = {value}\n")
    found = imported(site)
    assert found["ids"] == both_ids(locker("Theirs"))
    (warned,) = found["warned"]
    assert warned.startswith(f"RuntimeWarning: the environments of {value} are not registered: ")
    assert message in warned


def test_metadata_that_cannot_be_read_is_a_warning_too(site: Path) -> None:
    offer(site, "garbled", "no equals sign here\n")
    found = imported(site)
    assert "RuntimeWarning: the environments of installed packages" in found["warned"][0]
