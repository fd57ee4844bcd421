"""Name tables of the language layer: what a source may spell, what is renamed, what goes through a guard.

Only plain data and pure functions; the compile-time policy and the run-time guards both read these tables, so that
`x.name` and `getattr(x, "name")` follow one rule.
"""

from __future__ import annotations

import re
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PREFIX: Final = "sg0"
"""`_x` becomes `sg0_x`: a name that no library object has and that no source may spell."""

NEVER: Final = _words(
    """
    f_back f_builtins f_code f_generator f_globals f_lasti f_lineno f_locals f_trace f_trace_lines
    f_trace_opcodes tb_frame tb_lasti tb_lineno tb_next co_argcount co_cellvars co_code co_consts
    co_exceptiontable co_filename co_firstlineno co_flags co_freevars co_kwonlyargcount co_lines
    co_linetable co_lnotab co_name co_names co_nlocals co_positions co_posonlyargcount co_qualname
    co_stacksize co_varnames co_branches gi_code gi_frame gi_running gi_state gi_suspended gi_yieldfrom
    cr_await cr_code cr_frame cr_origin cr_running cr_state cr_suspended ag_await ag_code ag_frame
    ag_running ag_state ag_suspended mro func_code func_globals
    """
)
"""Doors to frames, tracebacks and code: refused as any identifier, on every supported Python."""

FORMATS: Final = frozenset({"format", "format_map"})
PROXIES: Final = frozenset({"groupindex", "metadata"})
"""Attributes that may hold a `mappingproxy`; comparing one hands out the dict behind it (gh-152405)."""
CLOCKS: Final = frozenset({"now", "today", "utcnow"})
GUARDED: Final = FORMATS | PROXIES | CLOCKS | {"obj", "register", "with_traceback"}
"""Public attributes that are read through the run-time guard and never natively."""

DEF_DUNDERS: Final = _words(
    """
    __init__ __new__ __post_init__ __init_subclass__ __class_getitem__ __set_name__ __str__ __repr__
    __bytes__ __format__ __lt__ __le__ __eq__ __ne__ __gt__ __ge__ __hash__ __bool__ __call__ __len__
    __length_hint__ __getitem__ __setitem__ __delitem__ __missing__ __iter__ __next__ __reversed__
    __contains__ __add__ __sub__ __mul__ __matmul__ __truediv__ __floordiv__ __mod__ __divmod__ __pow__
    __lshift__ __rshift__ __and__ __xor__ __or__ __radd__ __rsub__ __rmul__ __rmatmul__ __rtruediv__
    __rfloordiv__ __rmod__ __rdivmod__ __rpow__ __rlshift__ __rrshift__ __rand__ __rxor__ __ror__ __iadd__
    __isub__ __imul__ __imatmul__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __ilshift__ __irshift__
    __iand__ __ixor__ __ior__ __neg__ __pos__ __abs__ __invert__ __complex__ __int__ __float__ __index__
    __round__ __trunc__ __floor__ __ceil__ __enter__ __exit__ __copy__ __deepcopy__ __sizeof__
    """
)
"""Data-model methods that a class body may define."""

OWN_DUNDERS: Final = frozenset({"__init__", "__new__", "__init_subclass__"})
"""Readable through `super()` and on classes that may be base classes: `Base.__init__(self)`."""
WRITE_DUNDERS: Final = frozenset({"__setitem__", "__delitem__"})
"""Readable where the write guard would let the write itself through."""
READ_DUNDERS: Final = (DEF_DUNDERS - {"__set_name__", "__class_getitem__", "__sizeof__"}) | {
    "__name__",
    "__qualname__",
    "__doc__",
    "__class__",
    "__dict__",
    "__members__",
    "__module__",
    "__setattr__",
}
"""Readable by name; `__setattr__` is `object`'s only, and checks like `setattr`: frozen dataclasses need it."""
STORE_DUNDERS: Final = frozenset({"__doc__", "__all__", "__version__", "__author__"})
LOAD_DUNDERS: Final = frozenset({"__name__", "__doc__"})

KEPT: Final = frozenset({"_replace", "_asdict", "_fields", "_make", "_field_defaults"})
"""The namedtuple API keeps its names; it is harmless on any object."""
ENUM_NAMES: Final = frozenset({"_value_", "_name_"})
"""The two `_x_` attributes of enum members that a source may use."""
ENUM_HOOKS: Final = frozenset({"_missing_", "_generate_next_value_"})
"""The two `_x_` methods of enums that a class body may define; `def` only, and no guard hook has such a name."""

UNAVAILABLE: Final = _words(
    """
    exec eval compile globals locals open input breakpoint dir exit quit help memoryview aiter anext
    ExceptionGroup BaseExceptionGroup
    """
)
"""Builtins that environments do not get; refused at compile time unless the source binds the name itself."""

MATCH_TYPES: Final = (
    "bool",
    "bytes",
    "dict",
    "float",
    "frozenset",
    "int",
    "list",
    "set",
    "str",
    "tuple",
)
"""Builtin types whose class pattern may be positional; each has a private alias `_t_<name>_`."""

MODULES: Final[dict[str, tuple[str, ...]]] = {
    name: tuple(text.split())
    for name, text in {
        "abc": "ABC abstractmethod",
        "array": "array",
        "ast": "literal_eval",
        "bisect": "bisect bisect_left bisect_right insort insort_left insort_right",
        "calendar": "isleap leapdays monthrange weekday",
        "cmath": "acos acosh asin asinh atan atanh cos cosh e exp inf infj isclose isfinite isinf isnan log log10 nan"
        " nanj phase pi polar rect sin sinh sqrt tan tanh tau",
        "collections": "deque defaultdict Counter OrderedDict ChainMap UserDict UserList namedtuple abc",
        "collections.abc": "Callable Collection Container Generator Hashable ItemsView Iterable Iterator KeysView"
        " Mapping MutableMapping MutableSequence MutableSet Reversible Sequence Set Sized ValuesView",
        "contextlib": "contextmanager suppress nullcontext closing ExitStack",
        "copy": "copy deepcopy",
        "dataclasses": "dataclass field fields asdict astuple replace is_dataclass MISSING InitVar KW_ONLY"
        " FrozenInstanceError",
        "datetime": "date time timedelta datetime timezone tzinfo MINYEAR MAXYEAR UTC",
        "decimal": "Decimal Context getcontext DecimalException DivisionByZero FloatOperation Inexact InvalidOperation"
        " Overflow Rounded Underflow ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN"
        " ROUND_HALF_UP ROUND_UP ROUND_05UP",
        "difflib": "get_close_matches SequenceMatcher",
        "enum": "Enum IntEnum StrEnum Flag IntFlag auto unique",
        "fractions": "Fraction",
        "functools": "reduce partial lru_cache cache cmp_to_key cached_property wraps total_ordering",
        "graphlib": "TopologicalSorter CycleError",
        "hashlib": "md5 sha1 sha224 sha256 sha384 sha512 sha3_256 blake2b blake2s",
        "heapq": "heappush heappop heapify heappushpop heapreplace nlargest nsmallest merge",
        "io": "StringIO BytesIO",
        "itertools": "accumulate chain combinations combinations_with_replacement compress count cycle dropwhile"
        " filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest",
        "json": "dumps loads JSONDecodeError",
        "math": "acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc exp"
        " exp2 expm1 fabs factorial floor fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan isqrt lcm"
        " ldexp lgamma log log10 log1p log2 modf nan nextafter perm pi pow prod radians remainder sin sinh sqrt tan"
        " tanh tau trunc ulp",
        "numbers": "Number Complex Real Rational Integral",
        "operator": "abs add and_ attrgetter concat contains countOf eq floordiv ge getitem gt iadd iand iconcat"
        " ifloordiv ilshift imatmul imod imul index indexOf inv invert ior ipow irshift is_ is_not isub itemgetter"
        " itruediv ixor le length_hint lshift lt matmul methodcaller mod mul ne neg not_ or_ pos pow rshift sub"
        " truediv truth xor",
        "queue": "Queue LifoQueue PriorityQueue SimpleQueue Empty Full",
        "random": "Random random uniform triangular randint choice randrange sample shuffle choices normalvariate"
        " lognormvariate expovariate vonmisesvariate gammavariate gauss betavariate paretovariate weibullvariate"
        " getstate setstate getrandbits randbytes seed",
        "re": "compile match fullmatch search findall finditer sub subn split escape error Pattern Match NOFLAG A ASCII"
        " I IGNORECASE M MULTILINE S DOTALL U UNICODE X VERBOSE",
        "statistics": "mean fmean median median_low median_high mode multimode pstdev pvariance stdev variance"
        " quantiles harmonic_mean geometric_mean correlation covariance linear_regression StatisticsError",
        "string": "ascii_letters ascii_lowercase ascii_uppercase digits hexdigits octdigits punctuation printable"
        " whitespace capwords",
        "sys": "maxsize float_info byteorder getrecursionlimit setrecursionlimit",
        "textwrap": "dedent fill wrap indent shorten",
        "time": "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time sleep gmtime localtime"
        " strftime",
        "typing": "AbstractSet Annotated Any AnyStr Callable ChainMap ClassVar Collection Container Counter DefaultDict"
        " Deque Dict Final FrozenSet Generator Generic Hashable Iterable Iterator List Literal Mapping MutableMapping"
        " MutableSequence MutableSet NamedTuple NewType NoReturn Optional OrderedDict Protocol Reversible Self Sequence"
        " Set Sized SupportsAbs SupportsFloat SupportsInt Text Tuple Type TypeAlias TypeVar TypedDict Union cast final"
        " overload runtime_checkable",
    }.items()
}
MODULES["typing_extensions"] = MODULES["typing"]

_RENAMED = re.compile(rf"\b{PREFIX}(?=_)")


def is_dunder(name: str) -> bool:
    """Whether `name` has the form `__x__`."""
    return len(name) > 4 and name.startswith("__") and name.endswith("__")


def is_sunder(name: str) -> bool:
    """Whether `name` has the form `_x_` without being `__x__`; every hook of the guards has that form."""
    return (
        name.startswith("_")
        and name.endswith("_")
        and not is_dunder(name)
        and name.strip("_") != ""
    )


def rename(name: str) -> str:
    """`sg0_x` for a private `_x`; every other name unchanged."""
    if (
        not name.startswith("_")
        or name in KEPT
        or name.endswith("__")
        or is_sunder(name)
        or name.strip("_") == ""
    ):
        return name
    return PREFIX + name


def restore(text: str) -> str:
    """`text` with renamed private names as the source spelled them; for error messages and `__name__`."""
    return _RENAMED.sub("", text)


def reserved(name: str) -> str | None:
    """Why no source may spell `name`, whatever it names; None when it may."""
    if name in NEVER:
        return f"{name!r} is an attribute of the interpreter's frames and code"
    if name.startswith(PREFIX):
        return f"names that start with {PREFIX!r} are reserved: {name!r}"
    if is_sunder(name):
        return f"names with a leading and a trailing underscore are reserved: {name!r}"
    return None
