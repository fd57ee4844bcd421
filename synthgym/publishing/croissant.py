"""A snapshot as Croissant 1.1 metadata: JSON-LD that data set searches and loaders read.

It is made from the manifest and is no part of the snapshot: what it says of files, the manifest says too.
"""

from __future__ import annotations

import json
from typing import Any, Final

from synthgym.registry.layout import FileRef
from synthgym.registry.manifest import Manifest
from synthgym.registry.tables import COLUMNS

CONFORMS_TO: Final = "http://mlcommons.org/croissant/1.1"
_PARQUET: Final = "application/x-parquet"
_FORMATS: Final = {
    ".parquet": _PARQUET,
    ".json": "application/json",
    ".py": "text/x-python",
    ".safetensors": "application/octet-stream",
}
_TYPES: Final = {"string": "sc:Text", "int32": "sc:Integer"}
_DESCRIPTIONS: Final = {
    "index": "One environment a row: id, digest, title, skills, license, turns.",
    "envs": "One environment a row, with the record that its digest covers and its source.",
    "notes": "What is noted of an environment: one row for each environment and kind, payloads as JSON.",
}
_CONTEXT: Final[dict[str, Any]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def croissant(manifest: Manifest, url: str) -> dict[str, Any]:
    """The metadata of a snapshot whose page is at `url`; paths of files are relative to it."""
    tables = _tables(manifest)
    sharded = [_file_set(kind, refs) for kind, refs in tables.items() if len(refs) > 1]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": manifest.name,
        "description": f"{manifest.env_count} text environments for reinforcement learning, each a real "
        f"Gymnasium environment. Snapshot {manifest.digest}.",
        "version": _semantic(manifest.version),
        "license": manifest.license,
        "url": url,
        "distribution": [*(_file(ref) for ref in manifest.files), *sharded],
        "recordSet": [_records(kind, refs) for kind, refs in tables.items()],
    }


def croissant_bytes(manifest: Manifest, url: str) -> bytes:
    """The metadata as `croissant.json`. The same manifest gives the same bytes."""
    text = json.dumps(croissant(manifest, url), indent=1, ensure_ascii=True, sort_keys=True)
    return text.encode() + b"\n"


def _tables(manifest: Manifest) -> dict[str, list[FileRef]]:
    found: dict[str, list[FileRef]] = {}
    for ref in manifest.files:
        if ref.kind in COLUMNS:
            found.setdefault(ref.kind, []).append(ref)
    return found


def _file(ref: FileRef) -> dict[str, Any]:
    suffix = ref.path[ref.path.rindex(".") :]
    return {
        "@type": "cr:FileObject",
        "@id": ref.path,
        "name": ref.path,
        "contentUrl": ref.path,
        "contentSize": f"{ref.size} B",
        "encodingFormat": _FORMATS.get(suffix, "application/octet-stream"),
        "sha256": ref.sha256.removeprefix("sha256:"),
    }


def _file_set(kind: str, refs: list[FileRef]) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": kind,
        "name": kind,
        "containedIn": [{"@id": ref.path} for ref in refs],
        "encodingFormat": _PARQUET,
        "includes": f"{kind}/*.parquet",
    }


def _records(kind: str, refs: list[FileRef]) -> dict[str, Any]:
    """The rows of a table; of many files they are those of all."""
    source = {"fileSet": {"@id": kind}} if len(refs) > 1 else {"fileObject": {"@id": refs[0].path}}
    name = f"{kind}-rows"
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": _DESCRIPTIONS[kind],
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column}",
                "name": column,
                "dataType": _TYPES[arrow],
                "source": {**source, "extract": {"column": column}},
            }
            for column, arrow in COLUMNS[kind].items()
        ],
    }


def _semantic(version: str) -> str:
    """Croissant wants three numbers."""
    return ".".join([*version.split("."), "0", "0"][:3])
