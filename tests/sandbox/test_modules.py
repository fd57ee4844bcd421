from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import datetime
import decimal
import fractions
import functools
import graphlib
import io
import queue
import re
import types
from typing import Any

import pytest

from synthgym.sandbox import names
from synthgym.sandbox.compile import compile_source
from synthgym.sandbox.guards import Guards, StandInBase
from synthgym.sandbox.runtime import Runtime

RUNTIME = Runtime()
MUTABLE = (dict, list, set, bytearray, collections.OrderedDict, types.MappingProxyType)


def run(source: str, seed: int = 0) -> dict[str, Any]:
    compiled = compile_source(source)
    assert compiled.violations == ()
    assert compiled.code is not None
    return RUNTIME.instantiate(compiled.code, seed)


@pytest.mark.parametrize("module", sorted(names.MODULES))
def test_a_module_offers_exactly_what_its_list_says(module: str) -> None:
    source = f"import {module} as m\nfrom {module} import *\n"
    offered = {name for name in vars(run(source)["m"]) if not name.startswith("__")}
    assert offered == set(names.MODULES[module])


@pytest.mark.parametrize("module", sorted(names.MODULES))
def test_a_module_has_no_real_modules_name_and_cannot_be_changed(module: str) -> None:
    facade = run(f"import {module} as m")["m"]
    assert facade.__name__ == f"env:{module.replace('typing_extensions', 'typing')}"
    name = names.MODULES[module][0]
    with pytest.raises(AttributeError, match="read-only"):
        setattr(facade, name, None)
    with pytest.raises(AttributeError, match="read-only"):
        delattr(facade, name)


def reachable() -> dict[int, tuple[str, object]]:
    """Everything that public attributes lead to from what a source can name, by id."""
    namespace = run("import time")
    roots: dict[str, object] = {**RUNTIME._builtins, **namespace, **RUNTIME._modules}
    samples = [
        re.match("(?P<a>a)", "a"), decimal.Context(), fractions.Fraction(1, 2), decimal.Decimal(1), queue.Queue(),
        io.StringIO(), contextlib.ExitStack(), functools.lru_cache(len), graphlib.TopologicalSorter(),
        datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
        functools.cached_property(len), AttributeError("x"), dataclasses.field(),
    ]  # fmt: skip
    roots.update({f"sample {type(item).__name__}": item for item in samples})
    todo = [(name, value) for name, value in roots.items() if not name.startswith("_")]
    seen: dict[int, tuple[str, object]] = {}
    while todo:
        path, ob = todo.pop()
        if id(ob) in seen or path.count(".") > 6:
            continue
        seen[id(ob)] = (path, ob)
        todo.append((f"type({path})", RUNTIME._guards.type_of(ob)))
        for name in set(dir(ob)) - names.NEVER - names.GUARDED:
            if not name.startswith("_"):
                with contextlib.suppress(AttributeError, TypeError, ValueError):
                    todo.append((f"{path}.{name}", getattr(ob, name)))
    return seen


def test_public_attributes_lead_to_no_real_module_and_to_no_shared_container() -> None:
    found = reachable().values()
    assert [path for path, ob in found if type(ob) is types.ModuleType] == []
    assert [path for path, ob in found if type(ob) in MUTABLE] == []
    assert len(found) > 1000


class Memo(dict[int, object]):
    """What a hostile `memo` of `copy.deepcopy` sees; it can have any object skipped by claiming to hold its copy."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped: set[object] = set()
        self.last: object = None
        self.seen: list[object] = []

    def get(self, key: Any, default: Any = None) -> Any:
        self.last = key
        return 1 if key in self.skipped else default

    def __getitem__(self, key: int) -> Any:
        return self.seen  # `deepcopy` appends what it keeps alive

    def __setitem__(self, key: int, value: object) -> None:
        self.seen.append(value)


def seen_by_copying(ob: object) -> list[object]:
    memo = Memo()
    for _ in range(60):
        try:
            copy.deepcopy(ob, memo)
        except Exception:  # noqa: BLE001 - a hostile source goes on whatever is raised
            memo.skipped.add(memo.last)
        else:
            break
    return memo.seen


def test_a_deep_copy_leads_to_no_guard_and_to_no_module() -> None:
    secrets = (Guards, Runtime, StandInBase, types.ModuleType)
    leaks = []
    for path, ob in reachable().values():
        if not isinstance(ob, type):
            seen = seen_by_copying(ob)
            leaks += [
                path for item in seen if isinstance(item, secrets) or item is RUNTIME._builtins
            ]
            leaks += [path for item in seen if isinstance(item, dict) and "__import__" in item]
    assert leaks == []
    assert len(seen_by_copying([[], {}])) > 2


def test_names_that_generators_forget_to_import_are_there() -> None:
    found = run(
        "result = [Counter('aa'), deque([1]), math.floor(1.5), re.sub('a', 'b', 'a'), json.dumps([1]), Optional,\n"
        "  defaultdict(int), list(permutations([1, 2])),\n"
        "  random.Random(1).random() > 0, string.digits, reduce(max, [1, 2])]\n"
    )["result"]
    assert found[0] == {"a": 2}


def test_time_is_virtual_in_every_spelling() -> None:
    source = """
import time, datetime
from datetime import datetime as dt, date, timezone
class Sim:
    def __init__(self): self.now = 5
    def today(self): return "monday"
read = dt.now
result = [time.time(), dt.now(), dt.now(timezone.utc), dt.now(tz=None), dt.utcnow(), dt.today(), date.today(), read(),
  super(dt, dt).today(), dt(2020, 1, 1).now(), type(dt(2020, 1, 1)).now(), time.strftime("%Y"), time.gmtime().tm_year,
  time.perf_counter(), time.time_ns(), Sim().now, Sim().today()]
time.sleep(3600)
later = time.time()
"""
    first, second = run(source), run(source)
    assert first["result"] == second["result"]
    assert all(item.year == 2023 for item in first["result"][1:11])
    assert first["later"] - first["result"][0] >= 3600
    assert first["result"][-2:] == [5, "monday"]


def test_the_decimal_context_is_a_copy_that_tells_nothing() -> None:
    source = "import decimal\nx = decimal.Decimal(1) / 3\n"
    source += "c = decimal.getcontext()\nc.clear_traps()\ny = decimal.getcontext()"
    found = run(source)
    assert found["y"].flags[decimal.Inexact] is False
    assert decimal.getcontext().traps[decimal.InvalidOperation] is True
