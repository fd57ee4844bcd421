"""How much of public environment code the sandbox' language accepts, and whether it then does the same.

    python benchmarks/compatibility --packages rlve_gym reasoning_gym textarena gem_llm --site-packages DIR
    python benchmarks/compatibility --packages rlve_gym --run --seeds 3

The first form only compiles. With `--run` the files that can be run are run in plain Python and under the policy, in
this process, with the same seeds. See README.md in the folder above for what the columns mean.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import sysconfig
from pathlib import Path

from bundles import RUNNABLE
from corpora import CORPORA, IO_RULE
from refusals import Count, count
from same_seed import Comparison, compare

_WIDTH = 14


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; 2 when no package is installed where it was looked for."""
    options = _options(arguments)
    site = Path(options.site_packages)
    print(f"Python {sys.version.split()[0]}, {site}")
    print(f"I/O by design: {IO_RULE}\n")
    counts: dict[str, Count] = {}
    for package in options.packages:
        if not (site / CORPORA[package].folder).is_dir():
            print(f"{package}: not installed in {site}", file=sys.stderr)
            continue
        counts[package] = count(CORPORA[package], site)
    if not counts:
        return 2
    _print_counts(counts)
    for package, found in counts.items():
        _print_details(package, found, options.reasons)
    if options.run:
        for package in (name for name in counts if name in RUNNABLE):
            files = counts[package].without_io
            seeds = list(range(options.seeds))
            _print_comparison(package, compare(package, files, site, seeds, options.seconds))
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="compatibility", description=__doc__.split("\n")[0])
    parser.add_argument("--packages", nargs="+", choices=sorted(CORPORA), default=sorted(CORPORA))
    parser.add_argument("--site-packages", default=sysconfig.get_path("purelib"))
    parser.add_argument(
        "--run", action="store_true", help="also run what can be run, in this process"
    )
    parser.add_argument("--seeds", type=int, default=3, help="seeds a file (default 3)")
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds a file and way")
    parser.add_argument("--reasons", type=int, default=12, help="reasons printed a package")
    return parser.parse_args(arguments)


def _print_counts(counts: dict[str, Count]) -> None:
    columns = ("package", "files", "without I/O", "compile", "", "imports too", "")
    print("".join(f"{column:>{_WIDTH}}" for column in columns))
    for package, found in counts.items():
        _print_row(
            package, found.files, *map(len, (found.without_io, found.compiled, found.importable))
        )
    totals = [
        sum(map(len, (getattr(found, name) for found in counts.values())))
        for name in ("without_io", "compiled", "importable")
    ]
    _print_row("all", sum(found.files for found in counts.values()), *totals)


def _print_row(name: str, files: int, without_io: int, compiled: int, importable: int) -> None:
    def share(number: int) -> str:
        return f"{100 * number / without_io:.1f} %" if without_io else "-"

    cells = (name, files, without_io, compiled, share(compiled), importable, share(importable))
    print("".join(f"{cell:>{_WIDTH}}" for cell in cells))


def _print_details(package: str, found: Count, reasons: int) -> None:
    print(f"\n{package}: {CORPORA[package].rule}")
    for title, counter in (
        ("I/O", found.io),
        ("refused", found.refusals),
        ("modules that the sandbox does not offer", found.missing),
    ):
        if counter:
            print(f"  {title}:")
        for reason, number in counter.most_common(reasons):
            print(f"    {number:>4}  {reason[:100]}")


def _print_comparison(package: str, found: Comparison) -> None:
    comparable = found.identical + len(found.different)
    print(f"\n{package}, run: {comparable} comparable, {found.identical} identical")
    for name, difference in found.different.items():
        print(f"    {name}: {difference}")
    for reason, number in found.left_out.most_common():
        print(f"    left out {number:>4}: {reason}")
    if found.cpu:
        plain, guarded = map(sum, zip(*found.cpu, strict=True))
        middle = statistics.median(under / without for without, under in found.cpu)
        print(
            f"    CPU of module bodies and play: plain {plain:.2f} s, under the policy {guarded:.2f} s,"
            f" ratio {guarded / plain:.2f}; median file {middle:.2f}"
        )


if __name__ == "__main__":
    sys.exit(main())
