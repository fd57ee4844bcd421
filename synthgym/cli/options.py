"""Options and arguments that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SnapshotOption = Annotated[
    str | None,
    typer.Option(
        "--snapshot",
        help="Folder, packed file or reference of a snapshot; the bundled one unless given.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SignKeyOption = Annotated[
    Path | None, typer.Option(help="Private key in OpenSSH's form to sign with.")
]
SignersOption = Annotated[
    Path | None, typer.Option(help="File of allowed signers; the user's unless given.")
]
AdoptOption = Annotated[
    bool, typer.Option("--adopt", help="Sign on top of an index that nobody trusted has signed.")
]
ValidOption = Annotated[
    int | None,
    typer.Option(min=1, max=36_500, help="Days after which readers take the index for an old one."),
]
IdArgument = Annotated[str, typer.Argument(help="synthgym/<Name>-v<N>, a name, or a digest.")]
