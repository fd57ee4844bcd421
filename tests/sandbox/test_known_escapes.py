"""The audit: every door and every published escape of the design, each with the answer that must come."""

from __future__ import annotations

import sys

import pytest

from synthgym.sandbox import names
from synthgym.sandbox.compile import check_source, compile_source
from synthgym.sandbox.runtime import Runtime

RUNTIME = Runtime()

# What must be in the violation, or in the message of what is raised at run time.
PUBLISHED = {
    "#142 underscore names through getattr": (
        "leaked.append(getattr([], '__cla' + 'ss__').__mro__)",
        "__mro__",
    ),
    "#142 dynamic": (
        "leaked.append(getattr(getattr([], '__class__'), '__ba' + 'se__'))",
        "__base__",
    ),
    "str.format walks": ("leaked.append('{0.__class__.__mro__}'.format(1))", "__mro__"),
    "CVE-2023-37271 generator frame": (
        "g = (x for x in ())\nleaked.append(g.gi_frame)",
        "gi_frame",
    ),
    "CVE-2023-37271 by getattr": (
        "g = (x for x in ())\nleaked.append(getattr(g, 'gi_' + 'frame'))",
        "gi_frame",
    ),
    "CVE-2023-37271 f_back": ("leaked.append(x.f_back)", "f_back"),
    "CVE-2023-41039 format_map": (
        "leaked.append('{a.__class__.__base__}'.format_map({'a': 1}))",
        "__base__",
    ),
    "CVE-2023-41039 str.format unbound": (
        "leaked.append(str.format('{0.__class__.__base__}', 1))",
        "__base__",
    ),
    "CVE-2023-41039 Formatter": (
        "from string import Formatter",
        "string.Formatter is not available",
    ),
    "7.2 arguments of getattr": (
        "class S(str):\n    def __eq__(self, o): return True\nleaked.append(getattr(1, S('x')))",
        "plain string",
    ),
    "CVE-2024-47532 AttributeError.obj": (
        "try: math.nothing\nexcept AttributeError as e: leaked.append(e.obj)",
        "'obj' of AttributeError is not available",
    ),
    "CVE-2024-47532 the string module": (
        "leaked.append(string.Formatter)",
        "string.Formatter is not available",
    ),
    "CVE-2025-22153 except*": ("try: pass\nexcept* ValueError: pass", "except* is not available"),
    "CVE-2026-55830 positional-only": ("def f(_getattr_, /): return a.format", "'_getattr_'"),
    "CVE-2026-55830 lambda": ("f = lambda _write_, /: 0", "'_write_'"),
    "CVE-2026-76825 Formatter field": (
        "import string\nstring.Formatter().get_field('0', (), {})",
        "Formatter",
    ),
    "8.5 async generator frame": ("leaked.append(x.ag_frame)", "ag_frame"),
    "8.5 async generator await": ("leaked.append(getattr(1, 'ag_' + 'await'))", "ag_await"),
    "PR #330 attrgetter": (
        "import operator\nleaked.append(operator.attrgetter('__class__.__mro__')(1))",
        "__mro__",
    ),
    "PR #330 methodcaller": (
        "import operator\nleaked.append(operator.methodcaller('__reduce_ex__', 2)(1))",
        "__reduce_ex__",
    ),
    "open-chat-studio #4239 poisoned module": ("import json\njson.dumps = None", "read-only"),
}
DOORS = {
    "class pattern keyword": (
        "match 'x':\n    case str(format=f): leaked.append(f)",
        "cannot be used in a pattern",
    ),
    "class pattern through register": (
        "from abc import ABC\nfrom dataclasses import dataclass\n@dataclass\nclass A(ABC):\n    obj: int = 1\n"
        "A.register(AttributeError)\nmatch AttributeError():\n    case A(o): leaked.append(o)",
        "positional class patterns",
    ),
    "a literal's format with a path": (
        "leaked.append('{0.__class__.__base__}'.format(1))",
        "__base__",
    ),
    "a literal's format with a nested path": (
        "leaked.append('{0:{1.__class__}}'.format(1, 2).__class__.__base__)",
        "__base__",
    ),
    "a literal's format, not called": ("f = '{}'.format\nf.__self__", "__self__"),
    "a literal's format of an object that formats": (
        "class A:\n    def __format__(self, spec): return '{0.__globals__}'.format(self.__format__)\n"
        "leaked.append('{}'.format(A()))",
        "__globals__",
    ),
    "UserString.format": (
        "from collections import UserString",
        "collections.UserString is not available",
    ),
    "update_wrapper": (
        "from functools import update_wrapper",
        "functools.update_wrapper is not available",
    ),
    "wraps that copies __globals__": (
        "from functools import wraps\nimport json\nclass C:\n    pass\n"
        "c = wraps(json.dumps, ('__globals__',), ())(C())\nleaked.append(getattr(c, '__glob' + 'als__'))",
        "__globals__",
    ),
    "traceback argument of __exit__": (
        "class C:\n    def __enter__(self): return self\n"
        "    def __exit__(self, t, e, tb): leaked.append(tb.tb_frame)\nwith C(): 1 / 0",
        "tb_frame",
    ),
    "with_traceback": ("leaked.append(ValueError().with_traceback)", "with_traceback"),
    "__traceback__": (
        "try: 1 / 0\nexcept Exception as e: leaked.append(e.__traceback__)",
        "__traceback__",
    ),
    "__context__": ("leaked.append(ValueError().__context__)", "__context__"),
    "__radd__ of an augmented assignment": (
        "s = ''\ns.format += x",
        "augmented assignment to .format",
    ),
    "get_type_hints": (
        "from typing import get_type_hints",
        "typing.get_type_hints is not available",
    ),
    "ForwardRef": ("from typing import ForwardRef", "typing.ForwardRef is not available"),
    "singledispatch": (
        "from functools import singledispatch",
        "functools.singledispatch is not available",
    ),
    "make_dataclass": (
        "from dataclasses import make_dataclass",
        "dataclasses.make_dataclass is not available",
    ),
    "dataclass over a functional TypedDict": (
        "from typing import TypedDict\nleaked.append(TypedDict('T', {'x: int = print(1)': int}))",
        "base class only",
    ),
    "functional Enum": (
        "from enum import Enum\nleaked.append(Enum('E', 'a b'))",
        "class statement",
    ),
    "type with three arguments": ("leaked.append(type('X', (), {}))", "one argument"),
    "metaclass": ("class A(metaclass=type): pass", "class keyword 'metaclass'"),
    "setattr of a special name": ("class A: pass\nsetattr(A, '__call' + '__', 1)", "cannot be set"),
    "object.__setattr__ on a library object": (
        "object.__setattr__(json, 'dumps', None)",
        "instances of your own classes only",
    ),
    "object.__setattr__ of a special name": (
        "class A: pass\nobject.__setattr__(A(), '__class' + '__', int)",
        "cannot be set",
    ),
    "__setattr__ of another class": (
        "leaked.append(Fraction.__setattr__)",
        "available on object only",
    ),
    "a mappingproxy compared": (
        "import re\nclass E:\n    def __eq__(self, o): o['x'] = 1; return True\n"
        "p = re.compile('(?P<a>x)')\np.groupindex == E()\n"
        "leaked.extend(k for k in p.groupindex if k == 'x')\nraise ValueError('nothing leaked')",
        "nothing leaked",
    ),
    "IMPORT_FROM fallback": ("from json import decoder", "json.decoder is not available"),
    "IMPORT_FROM fallback of os": ("from os import path", "module 'os' is not available"),
    "guards copied with a memo": (
        "import copy\nmemo = {id(m): m for m in (bisect, collections, copy, functools, heapq, itertools, json, math,"
        " operator, re, string)}\ntry: copy.deepcopy(getattr, memo)\n"
        "finally: leaked.extend(m for m in memo.values() if isinstance(m, dict))",
        "cannot be copied",
    ),
    "a stand-in copied with a memo": (
        "import copy\nfrom typing import NamedTuple\ncopy.deepcopy(NamedTuple.__call__, {})",
        "cannot be copied",
    ),
}
REAL_MODULES: list[str] = """
    random._os collections._sys statistics.sys re.enum.sys json.codecs.open dataclasses.sys typing.sys
    enum.sys fractions.sys queue.threading copy.copyreg contextlib.os heapq.__about__ textwrap.re
    calendar.locale bisect.__builtins__ datetime.sys decimal._decimal string._re operator._abs
    hashlib._hashlib abc._abc functools.namedtuple difflib._namedtuple graphlib.GenericAlias io.open
    array.__loader__ time.__spec__
""".split()  # noqa: SIM905 - a list of this length is easier to read so
NEVER_DEFINED: list[str] = """
    __getattribute__ __getattr__ __setattr__ __delattr__ __get__ __set__ __del__ __reduce__
    __reduce_ex__ __getstate__ __setstate__ __getnewargs__ __getnewargs_ex__ __instancecheck__
    __subclasscheck__ __subclasshook__ __prepare__ __mro_entries__ __class__ __dict__ __match_args__
    __annotations__ __dataclass_fields__ __await__ __aiter__ __delete__ __dir__ __module__ __objclass__
    __annotate__ __buffer__ __replace__ __static_attributes__ __type_params__ __weakref__
""".split()  # noqa: SIM905 - a list of this length is easier to read so
NEVER_OFFERED = {
    "random": "SystemRandom",
    "collections": "UserString",
    "functools": "singledispatch singledispatchmethod update_wrapper partialmethod",
    "re": "Scanner purge template sys enum",
    "json": "load dump JSONEncoder JSONDecoder codecs decoder",
    "string": "Formatter Template",
    "operator": "setitem delitem call",
    "dataclasses": "make_dataclass",
    "typing": "get_type_hints ForwardRef no_type_check",
    "decimal": "setcontext localcontext DefaultContext BasicContext",
    "ast": "parse NodeVisitor unparse",
    "io": "open open_code FileIO TextIOWrapper",
    "hashlib": "file_digest new scrypt pbkdf2_hmac",
    "contextlib": "redirect_stdout chdir asynccontextmanager AsyncExitStack",
    "sys": "modules _getframe settrace exit stdin stdout path meta_path exc_info",
    "abc": "ABCMeta update_abstractmethods",
    "enum": "EnumMeta EnumType property member global_enum",
    "copy": "copyreg dispatch_table",
    "statistics": "NormalDist sys random",
    "time": "clock_settime tzset get_clock_info",
}


def outcome(source: str) -> tuple[str, list[object]]:
    """What was said against `source`, at compile time or at run time, and what it leaked."""
    compiled = compile_source("leaked = []\n" + source)
    if compiled.code is None:
        return " | ".join(item.message for item in compiled.violations), []
    wrapped = compile_source(
        "leaked = []\ndef go():\n" + "".join(f"    {line}\n" for line in source.split("\n"))
    )
    assert wrapped.code is not None, wrapped.violations
    namespace = RUNTIME.instantiate(wrapped.code, 0)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its text is what the caller checks
        namespace["go"]()
    return f"{type(caught.value).__name__}: {caught.value}", namespace["leaked"]


@pytest.mark.parametrize("case", [*PUBLISHED, *DOORS])
def test_a_known_escape_gets_the_answer_that_it_must(case: str) -> None:
    source, expected = {**PUBLISHED, **DOORS}[case]
    said, leaked = outcome(source)
    assert expected in said
    assert leaked == []


@pytest.mark.parametrize("path", REAL_MODULES)
def test_a_real_module_behind_a_facade_is_out_of_reach(path: str) -> None:
    module, first = path.split(".")[:2]
    said, _ = outcome(f"import {module}\n{path}")
    assert "is not available" in said
    for dynamic in (
        f"getattr({module}, {first[:2]!r} + {first[2:]!r})",
        f"'{{0.{first}}}'.format({module})",
    ):
        said, leaked = outcome(f"import {module}\nleaked.append({dynamic})")
        assert said.startswith("AttributeError"), dynamic
        assert leaked == []


@pytest.mark.parametrize("name", NEVER_DEFINED)
def test_a_special_method_that_changes_the_rules_cannot_be_defined(name: str) -> None:
    for body in (
        f"def {name}(self): pass",
        f"{name} = 1",
        f"{name}: int = 1",
        f"class {name}: pass",
    ):
        found = check_source(f"class A:\n    {body}")
        assert [item.line for item in found] == [2], body
        assert name in found[0].message


@pytest.mark.parametrize("module", NEVER_OFFERED)
def test_a_module_does_not_offer_what_would_open_it(module: str) -> None:
    assert set(NEVER_OFFERED[module].split()).isdisjoint(names.MODULES[module])


@pytest.mark.skipif(
    sys.version_info < (3, 12), reason="type parameters are syntax since Python 3.12"
)
@pytest.mark.parametrize(
    "source",
    [
        "def f[T](x): pass",
        "class A[T]: pass",
        "type X = int",
        "def f[_write_](x): pass",
        "class A[*T, **P]: pass",
    ],
)
def test_type_parameters_are_refused(source: str) -> None:
    assert any("type" in item.message for item in check_source(source))


def test_type_parameters_never_compile_whatever_the_version() -> None:
    assert check_source("def f[T](x): pass") != ()


@pytest.mark.parametrize("name", sorted(names.UNAVAILABLE))
def test_a_builtin_that_reaches_out_is_refused_called_or_not(name: str) -> None:
    for source in (f"{name}()", f"x = {name}", f"f({name})", f"def g(a={name}): pass"):
        assert [name in item.message for item in check_source(source)] == [True], source
