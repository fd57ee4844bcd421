"""What README.md and docs/ say is true: snippets run, commands exist, tables are complete, links lead somewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer.main
from pages import CODE, FENCE, ROOT, after, block, read, shown, table

import spade_loop.cli
import synthgym.cli
from spade_loop.config import load_config
from synthgym.registry import Snapshot, bundled_root
from synthgym.registry.layout import FILE_CAPS, MANIFEST, MAX_ENTRIES, MAX_MANIFEST_BYTES
from synthgym.registry.notes import KINDS, VECTOR
from synthgym.sandbox import FaultKind, isolation
from synthgym.sandbox.names import MODULES
from synthgym.spec import Limits
from synthgym.validation import Reason, Severity, validate
from synthgym.validation.gates import GATES, STATIC_GATE

DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [*DOCS, ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]
APPS = {"synthgym": synthgym.cli.app, "spade-loop": spade_loop.cli.app}
CHEAP = ("list", "show", "isolation", "plan", "recipes", "verify")
"""Sub-commands that need no input and write nothing."""


# --- README ---


@pytest.mark.parametrize("marker", ["run", "test"])
def test_a_marked_command_of_the_readme_is_one_line_and_uses_the_constraints(marker: str) -> None:
    found = re.findall(rf"<!-- {marker} -->\n```bash\n([^\n]+)\n```\n", read("README.md"))
    assert len(found) == 1
    assert "-c constraints.txt" in found[0]
    assert found[0].startswith("python3 -m venv .venv && .venv/bin/pip install")


# --- snippets ---

SNIPPETS = [
    pytest.param(text, id=f"{shown(path)}-{number}")
    for path in DOCS
    for number, (language, text) in enumerate(FENCE.findall(path.read_text(encoding="utf-8")))
    if language == "python"
]


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_runs(snippet: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", snippet]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("marker", ["environment", "tool environment"])
def test_an_environment_of_the_docs_meets_the_contract(marker: str) -> None:
    report = validate(block("docs/environments.md", marker))
    assert report.findings == (), [str(finding) for finding in report.findings]


def test_the_table_of_gates_is_that_of_the_code() -> None:
    names = [STATIC_GATE, *(gate.name for gate in GATES)]
    assert list(table("docs/validation.md", "gates")) == names


# --- commands ---


def commands() -> Iterator[tuple[str, str]]:
    """(page, command line) of everything that looks like one of our commands."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        lines = [
            line.strip()
            for language, body in FENCE.findall(text)
            if language in ("bash", "console")
            for part in body.splitlines()
            for line in part.split("&&")
        ]
        for line in [*lines, *CODE.findall(FENCE.sub("", text))]:
            line = line.removeprefix(".venv/bin/")
            if line.split(" ")[0] in APPS:
                yield shown(path), line


COMMANDS = sorted(set(commands()))


def resolve(words: list[str]) -> tuple[Any, list[str]]:
    """The sub-command that a command line names, and the rest of its words."""
    command: Any = typer.main.get_command(APPS[words[0]])
    rest = words[1:]
    while hasattr(command, "commands") and rest:
        assert rest[0] in command.commands, f"no command {rest[0]!r} in {' '.join(words)}"
        command, rest = command.commands[rest[0]], rest[1:]
    return command, rest


def options_of(command: Any) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts if name[:1] == "-"}


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_a_command_that_is_named_exists_with_its_options(page: str, line: str) -> None:
    command, rest = resolve(shlex.split(line))
    used = {word.partition("=")[0] for word in rest if word.startswith("-")}
    assert used <= options_of(command) | {"--help"}, f"{page}: {line}"
    # Settings are named in arguments; a misspelt one would be refused here.
    load_config("tiny", [after for word, after in pairwise(rest) if word == "--set"])


RUNNABLE = sorted(
    {
        line
        for _, line in COMMANDS
        if {*line.split()[1:3]} & {*CHEAP} and not re.search(r"[\[<]|[A-Z]{4}|\.\.\.", line)
    }
)


@pytest.mark.parametrize("line", RUNNABLE)
def test_a_command_that_costs_little_runs(line: str) -> None:
    words = shlex.split(line)
    module = words[0].replace("-", "_").replace("spade_loop", "spade_loop.cli")
    module = "synthgym.cli" if words[0] == "synthgym" else module
    start = f"import sys; sys.argv[0] = {words[0]!r}; from {module} import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", start, *words[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_enough_commands_were_found_to_trust_the_tests_above() -> None:
    assert {line.split()[0] for line in RUNNABLE} == set(APPS)
    assert len(RUNNABLE) >= 6


def leaves(app: str, command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command of an app that does something, by its full name."""
    name = f"{path} {command.name}".strip() if path else app
    if hasattr(command, "commands"):
        for inner in command.commands.values():
            yield from leaves(app, inner, name)
    else:
        yield name, command


LEAVES = [
    leaf for app, typed in APPS.items() for leaf in leaves(app, typer.main.get_command(typed))
]


@pytest.mark.parametrize(("name", "command"), LEAVES, ids=[name for name, _ in LEAVES])
def test_the_page_of_commands_has_every_option_and_no_other(name: str, command: Any) -> None:
    sections = re.split(r"^###? ", read("docs/cli.md"), flags=re.MULTILINE)
    (section,) = [s for s in sections if re.match(rf"{re.escape(name)}(?: [A-Z\[].*)?\n", s)]
    documented = set(re.findall(r"^\| `(--[\w-]+)", section, re.MULTILINE))
    assert documented == options_of(command) - {"--help"}


# --- tables ---


def test_the_table_of_reasons_is_that_of_the_code() -> None:
    mark = {Severity.REFUSED: "", Severity.WARNING: " **Warning.**"}
    expected = [
        f"| `{reason}` | {reason.explanation}{mark[reason.severity]} | {reason.remedy} |"
        for reason in Reason
    ]
    assert after("docs/reasons.md", "reasons").strip().splitlines()[2:] == expected


def test_the_modules_and_limits_are_those_of_the_code() -> None:
    assert CODE.findall(after("docs/environments.md", "modules")) == sorted(MODULES)
    limits = Limits()
    expected = {name: f"{getattr(limits, name):g}" for name in limits.__slots__}
    assert table("docs/environments.md", "limits") == expected


def test_the_layers_and_faults_of_the_sandbox_are_those_of_the_code() -> None:
    layers = [layer.name for layer in isolation().layers]
    documented = table("docs/sandbox.md", "layers")
    assert set(layers) <= set(documented)
    if sys.platform == "linux":
        assert sorted(documented) == sorted(layers)
    assert set(table("docs/sandbox.md", "faults")) == {str(kind) for kind in FaultKind}


def test_the_caps_and_the_manifest_are_those_of_the_code() -> None:
    caps = {name: f"{size // 1024} KiB" for name, size in FILE_CAPS.items()}
    documented = table("docs/registry.md", "caps")
    most = f"{MAX_MANIFEST_BYTES // 1024} KiB, {MAX_ENTRIES:,} environments"
    assert documented.pop(MANIFEST) == most
    assert documented == caps
    manifest = json.loads(Snapshot.open(bundled_root()).manifest.to_bytes())
    assert set(table("docs/registry.md", "manifest")) == set(manifest)
    assert set(table("docs/registry.md", "core")) == set(manifest["core"])
    assert set(table("docs/registry.md", "notes")) == {*KINDS, f"{VECTOR}<embedder>"}


# --- architecture ---


def tree() -> Iterator[str]:
    """Paths of the tree in architecture.md."""
    folder = ""
    for line in block("docs/architecture.md", "tree").splitlines():
        name, _, meaning = line.strip().partition(" ")
        if line.startswith(" "):
            assert meaning.strip(), f"{name} is not explained"
            yield f"{folder}{name}"
        else:
            folder = name


def test_the_tree_has_every_module_once() -> None:
    modules = [
        shown(path)
        for package in APPS
        for path in (ROOT / package.replace("-", "_")).rglob("*.py")
        if path.stat().st_size and path.name != "env.py"
    ]
    assert sorted(tree()) == sorted(modules)


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("package", ["synthgym", "spade_loop"])
def test_the_layers_are_those_that_the_tests_enforce(package: str) -> None:
    def existing(names: Iterable[str]) -> list[str]:
        folder = ROOT / package
        return [n for n in names if (folder / f"{n}.py").is_file() or (folder / n).is_dir()]

    layers = load(ROOT / "tests" / "test_layers.py").LAYERS[package]
    expected = [names for line in layers if (names := existing(line.split()))]
    documented = block("docs/architecture.md", f"layers {package}").splitlines()
    assert [line.split() for line in documented] == expected


# --- links ---


def anchors(path: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=shown)
def test_relative_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", path.read_text("utf-8"))):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        page = path.parent / name if name else path
        assert page.exists(), target
        assert not anchor or anchor in anchors(page), target


@pytest.mark.parametrize("path", PAGES, ids=shown)
def test_files_that_are_named_exist(path: Path) -> None:
    prefixes = (
        "docs/",
        "examples/",
        "tests/",
        "benchmarks/",
        "registry/",
        "synthgym/",
        "spade_loop/",
    )
    for span in CODE.findall(FENCE.sub("", path.read_text("utf-8"))):
        if span.startswith(prefixes) and re.fullmatch(r"[\w./-]+", span) and "-v" not in span:
            assert (ROOT / span).exists() or span == "synthgym/bundled", span
