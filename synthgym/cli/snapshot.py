"""`synthgym snapshot`: make snapshots, compare them, take them apart, pack, sign and withdraw them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from synthgym.cli.options import AdoptOption, JsonOption, SignersOption, SignKeyOption, ValidOption

app = typer.Typer(
    name="snapshot",
    help="Build, verify, compare, merge, split, pack and sign snapshots of environments.",
    no_args_is_help=True,
)
DIFFERENT: Final = 1
BROKEN: Final = 3
"""Exit code of a snapshot that is not what it promises."""
UNTRUSTED: Final = 4
"""Exit code of a signature that is missing, unknown or wrong."""

Place = Annotated[str, typer.Argument(help="Folder, packed file, or reference of a snapshot.")]
Target = Annotated[Path, typer.Argument(help="Where the new snapshot goes; nothing may be there.")]
NameOption = Annotated[str | None, typer.Option(help="Name of the new snapshot.")]
ReleaseOption = Annotated[str, typer.Option(help="Version of the new snapshot.")]
LayoutOption = Annotated[
    str | None, typer.Option(help="folder or shards; shards for more than 256 unless given.")
]


@app.command()
def build(
    folder: Annotated[
        Path, typer.Argument(help="Folder of the registry.", exists=True, file_okay=False)
    ],
    release: Annotated[
        str | None,
        typer.Option(help="Version of the snapshot; that of the old manifest, or 0.1.0."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the snapshot; that of the old manifest, or bundled.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Let ids stand for new content: nobody has them yet.")
    ] = False,
) -> None:
    """Validate every env.py and card.json and write spec.json, report.json and manifest.json.

    Exit code 1 when an environment is refused; then nothing was written.
    """
    from synthgym.cli.snapshot_command import build

    build(folder, name, release, force=force)


@app.command()
def verify(
    place: Place,
    require_signature: Annotated[
        bool, typer.Option("--require-signature", help="Refuse one that nobody you know signed.")
    ] = False,
    allowed_signers: SignersOption = None,
) -> None:
    """Read every file, and compute every digest anew; nothing is executed.

    Exit code 3 when anything differs, 4 when a signature is not good.
    """
    from synthgym.cli.sign_command import check
    from synthgym.cli.snapshot_command import verify

    check(verify(place), allowed_signers, require=require_signature)


@app.command()
def info(place: Place, json: JsonOption = False) -> None:
    """Say what a snapshot is: name, version, digests, counts, license, parents, files, signature."""
    from synthgym.cli.snapshot_command import info

    info(place, as_json=json)


@app.command()
def diff(
    old: Place,
    new: Place,
    notes: Annotated[bool, typer.Option(help="Compare notes as well.")] = True,
    json: JsonOption = False,
) -> None:
    """List what was added, removed, renamed, and noted anew. Exit code 1 when anything differs."""
    from synthgym.cli.snapshot_command import diff

    if diff(old, new, notes=notes, as_json=json):
        raise typer.Exit(DIFFERENT)


@app.command()
def merge(
    places: Annotated[list[str], typer.Argument(help="Two or more snapshots; the first wins.")],
    out: Annotated[Path, typer.Option(help="Where the new snapshot goes.")],
    name: Annotated[str, typer.Option(help="Name of the new snapshot.")],
    release: ReleaseOption = "1.0.0",
    on_conflict: Annotated[
        str, typer.Option(help="An id with two contents: error, first or renumber.")
    ] = "error",
    layout: LayoutOption = None,
) -> None:
    """Unite snapshots by content."""
    from synthgym.cli.snapshot_command import merge

    merge(places, out, name, release, on_conflict, layout)


@app.command("filter")
def filter_command(  # noqa: PLR0913 (one parameter an option)
    place: Place,
    out: Target,
    skill: Annotated[list[str] | None, typer.Option(help="One of these skills.")] = None,
    license: Annotated[list[str] | None, typer.Option(help="One of these licenses.")] = None,
    search: Annotated[str, typer.Option(help="Words in name or title.")] = "",
    where: Annotated[
        list[str] | None,
        typer.Option(help="A bound on a metric, as agents.random.solve_rate<0.1; all must hold."),
    ] = None,
    zone: Annotated[
        list[str] | None,
        typer.Option(help="One of these zones, as spade-loop gap --write noted them."),
    ] = None,
    model: Annotated[
        str, typer.Option(help="The model whose zones are meant, where several were measured.")
    ] = "",
    ids: Annotated[Path | None, typer.Option(help="A file of ids or digests, one a line.")] = None,
    drop: Annotated[
        bool, typer.Option("--drop", help="Keep those that do not fit instead.")
    ] = False,
    name: NameOption = None,
    release: ReleaseOption = "1.0.0",
    layout: LayoutOption = None,
) -> None:
    """Write the environments that fit as a snapshot of their own."""
    from synthgym.cli.filter_command import Wanted, run

    wanted = Wanted(
        skills=tuple(skill or ()),
        licenses=tuple(license or ()),
        search=search,
        where=tuple(where or ()),
        ids=ids,
        drop=drop,
        zones=tuple(zone or ()),
        model=model,
    )
    run(place, out, wanted, name, release, layout)


@app.command()
def split(
    place: Place,
    out: Annotated[Path, typer.Argument(help="Folder in which the parts go.")],
    part: Annotated[
        list[str], typer.Option(help="Name and share, as train=0.9; twice or more, up to 1.")
    ],
    seed: Annotated[int, typer.Option(min=0, help="Which of the splits.")] = 0,
    release: ReleaseOption = "1.0.0",
) -> None:
    """Take a snapshot apart. Near copies stay together, so that a held-out part is held out."""
    from synthgym.cli.snapshot_command import split

    split(place, out, part, seed, release)


@app.command()
def pack(place: Place, target: Annotated[Path, typer.Argument(help="The file, *.sgz.")]) -> None:
    """Write a snapshot as one file. The same snapshot gives the same bytes."""
    from synthgym.cli.snapshot_command import pack

    pack(place, target)


@app.command()
def unpack(place: Place, target: Target) -> None:
    """Write a packed snapshot as a folder."""
    from synthgym.cli.snapshot_command import unpack

    unpack(place, target)


@app.command()
def embed(
    folder: Annotated[Path, typer.Argument(help="Folder of the snapshot.", exists=True)],
    embedder: Annotated[str, typer.Option(help="hash, minilm or auto.")] = "auto",
) -> None:
    """Note the rules of every environment as a vector, for `synthgym search --like` and for readers."""
    from synthgym.cli.embed_command import run

    run(folder, embedder)


@app.command()
def sign(
    folder: Annotated[Path, typer.Argument(help="Folder of the snapshot.", exists=True)],
    key: Annotated[Path, typer.Option(help="Your private SSH key, for example ~/.ssh/id_ed25519.")],
) -> None:
    """Sign the manifest with an SSH key. `ssh-keygen -Y verify` accepts the signature as well."""
    from synthgym.cli.sign_command import run

    run(folder, key)


@app.command()
def yank(  # noqa: PLR0913 (one parameter an option)
    remote: Annotated[str, typer.Argument(help="Folder or URL of a registry.")],
    name: Annotated[str, typer.Argument(help="Name of the snapshot.")],
    version: Annotated[str, typer.Argument(help="The release.")],
    reason: Annotated[str, typer.Option(help="Why it should not be used.")] = "",
    severity: Annotated[str, typer.Option(help="broken, license or unsafe.")] = "broken",
    undo: Annotated[bool, typer.Option("--undo", help="Take a yank back.")] = False,
    sign_key: SignKeyOption = None,
    allowed_signers: SignersOption = None,
    adopt: AdoptOption = False,
    valid_days: ValidOption = None,
) -> None:
    """Say that a release should not be used any more. Those who pinned it keep it, with a warning."""
    from synthgym.cli.publish_command import Settings, run_yank

    if undo == bool(reason):
        raise typer.BadParameter("give either --reason TEXT or --undo")
    settings = Settings(
        sign_key=sign_key, allowed_signers=allowed_signers, adopt=adopt, valid_days=valid_days
    )
    run_yank(remote, (name, version), reason, severity, settings)
