"""Schemas read off the text of `tool_` methods."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_sources import one_call, plain

from synthgym.tool_schemas import Problem, tool_schemas
from synthgym.validation.tool_checks import schema_problem

BODY = """
class DeskEnv({bases}):
    {methods}
"""


def read(source: str, name: str = "DeskEnv") -> tuple[list[dict[str, Any]], list[Problem]]:
    tree = ast.parse(source)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    return tool_schemas(tree, classes[name])


def read_tool(signature: str, docstring: str = '"""Do it."""', *decorators: str) -> Any:
    """The function of one tool, or the message that says why there is none."""
    marks = "".join(f"    @{name}\n" for name in decorators)
    source = f"class DeskEnv(ToolEnv):\n{marks}    def tool_do({signature}):\n        {docstring}\n"
    found, problems = read(source)
    assert len(found) + len(problems) == 1
    return problems[0].message if problems else found[0]["function"]


NULL = {"type": "null"}
TEXT = {"type": "string"}
WHOLE = {"type": "integer"}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        ("str", TEXT),
        ("int", WHOLE),
        ("float", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("None", NULL),
        ("'str'", TEXT),
        ("Any", {}),
        ("typing.Any", {}),
        ("list", {"type": "array"}),
        ("List", {"type": "array"}),
        ("typing.List", {"type": "array"}),
        ("list[int]", {"type": "array", "items": WHOLE}),
        ("List['int']", {"type": "array", "items": WHOLE}),
        ("typing.Sequence[str]", {"type": "array", "items": TEXT}),
        ("list[list[str]]", {"type": "array", "items": {"type": "array", "items": TEXT}}),
        ("list[Any]", {"type": "array", "items": {}}),
        ("dict", {"type": "object"}),
        ("dict[str, int]", {"type": "object", "additionalProperties": WHOLE}),
        ("Dict[str, Any]", {"type": "object", "additionalProperties": {}}),
        ("Optional[int]", {"anyOf": [WHOLE, NULL]}),
        ("typing.Optional[str]", {"anyOf": [TEXT, NULL]}),
        ("Optional[Optional[int]]", {"anyOf": [WHOLE, NULL]}),
        ("int | None", {"anyOf": [WHOLE, NULL]}),
        ("int | str | None", {"anyOf": [WHOLE, TEXT, NULL]}),
        ("int | int", WHOLE),
        ("Union[int, str]", {"anyOf": [WHOLE, TEXT]}),
        ("Union[int]", WHOLE),
        ("Literal['a', 'b']", {"type": "string", "enum": ["a", "b"]}),
        ("Literal[1, -2]", {"type": "integer", "enum": [1, -2]}),
        (
            "Literal['a', 1, None]",
            {
                "anyOf": [
                    {"type": "string", "enum": ["a"]},
                    {"type": "integer", "enum": [1]},
                    NULL,
                ]
            },
        ),
        ("Annotated[int, 'grams']", WHOLE),
    ],
)
def test_a_type_becomes_its_schema(annotation: str, schema: dict[str, Any]) -> None:
    found = read_tool(f"self, x: {annotation}")
    assert found["parameters"]["properties"] == {"x": schema}
    assert schema_problem({"type": "function", "function": found}) == ""


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        ("tuple", "no JSON schema"),
        ("tuple[int, int]", "no JSON schema"),
        ("set[str]", "no JSON schema"),
        ("Parcel", "'Parcel' has no JSON schema"),
        ("bytes", "no JSON schema"),
        ("complex", "no JSON schema"),
        ("Callable[[int], str]", "no JSON schema"),
        ("dict[int, str]", "keys of an object"),
        ("dict[str]", "no JSON schema"),
        ("list[int, str]", "no JSON schema"),
        ("Literal[True]", "texts or whole numbers"),
        ("Literal[1.5]", "texts or whole numbers"),
        ("Literal[{[]: 1}]", "texts or whole numbers"),
        ("Literal[print('x')]", "texts or whole numbers"),
        ("Literal['\\ud800']", "not UTF-8"),
        ("'in t'", "does not parse"),
        ("'\\ud800'", "does not parse"),
        ("'a' 'b.' + 'c'", "no JSON schema"),
        ("print('run')", "no JSON schema"),
        ("3", "no JSON schema"),
        (repr("-" * 5000 + "1"), "too long"),
        (repr("list[" * 30), "too long"),
        (repr("(" * 99), "does not parse"),
    ],
)
def test_a_type_that_json_does_not_have_is_a_problem(annotation: str, said: str) -> None:
    assert said in read_tool(f"self, x: {annotation}")


@pytest.mark.parametrize(
    ("signature", "said"),
    [
        ("self, x", "parameter 'x' needs a type"),
        ("self, x: int, y", "parameter 'y' needs a type"),
        ("self, *, y", "parameter 'y' needs a type"),
        ("self, *rest: int", "no *args"),
        ("self, **rest: int", "no *args"),
        ("self, x: int, /", "no *args"),
        ("", "must be self"),
        ("self, __x: int", "private"),
    ],
)
def test_a_signature_that_cannot_be_called_by_name_is_a_problem(signature: str, said: str) -> None:
    assert said in read_tool(signature)


@pytest.mark.parametrize("docstring", ["pass", '""', '"""   """', '"""\n\n        """', "f'x'"])
def test_a_tool_without_a_docstring_is_a_problem(docstring: str) -> None:
    assert "needs a docstring" in read_tool("self", docstring)


def test_a_docstring_of_nothing_but_arguments_does_not_say_what_the_tool_does() -> None:
    assert "needs a docstring" in read_tool(
        "self", '"""Args:\n            x: A number.\n        """'
    )


def test_what_has_a_default_is_not_required() -> None:
    parameters = read_tool("self, a: int, b: str = 'x', *, c: int, d: float = 1.5")["parameters"]
    assert list(parameters["properties"]) == ["a", "b", "c", "d"]
    assert parameters["required"] == ["a", "c"]


def test_a_default_of_none_may_be_sent_too() -> None:
    parameters = read_tool("self, a: int = None, b: Optional[str] = None")["parameters"]
    assert parameters["properties"] == {"a": {"anyOf": [WHOLE, NULL]}, "b": {"anyOf": [TEXT, NULL]}}
    assert parameters["required"] == []


def test_static_and_class_methods_have_the_parameters_that_a_call_fills() -> None:
    static = read_tool("x: int, y: str", '"""Do."""', "staticmethod")
    assert static["parameters"]["required"] == ["x", "y"]
    assert read_tool("cls, x: int", '"""Do."""', "classmethod")["parameters"]["required"] == ["x"]
    assert "not a property" in read_tool("self", '"""Do."""', "property")


def test_the_docstring_describes_the_tool_and_its_parameters() -> None:
    docstring = '''"""Move a parcel
        to another shelf.

        It must not be sealed.

        Args:
            parcel (str): Its number: one letter,
                two digits.

                And nothing else.
            shelf: The letter of the shelf.
            other: Not a parameter.

        Returns:
            shelf: What it says afterwards.
        """'''
    found = read_tool("self, parcel: str, shelf: str, note: str = ''", docstring)
    assert found["description"] == "Move a parcel to another shelf."
    assert found["parameters"]["properties"] == {
        "parcel": TEXT | {"description": "Its number: one letter, two digits. And nothing else."},
        "shelf": TEXT | {"description": "The letter of the shelf."},
        "note": TEXT,
    }


def test_arguments_that_follow_at_once_are_not_part_of_the_description() -> None:
    docstring = '"""Weigh.\n        Parameters:\n            x: Grams.\n        """'
    found = read_tool("self, x: int", docstring)
    assert found["description"] == "Weigh."
    assert found["parameters"]["properties"]["x"] == WHOLE | {"description": "Grams."}


def names(source: str) -> list[tuple[str, str]]:
    found, problems = read(source)
    assert problems == []
    return [(item["function"]["name"], item["function"]["description"]) for item in found]


def method(name: str, docstring: str = "Do.") -> str:
    return f'    def {name}(self) -> str:\n        """{docstring}"""\n'


def test_tools_come_in_the_order_of_the_text_and_nothing_else_is_one() -> None:
    source = (
        "class DeskEnv(ToolEnv):\n"
        + method("tool_b")
        + method("helper")
        + method("toolbox")
        + method("Tool_c")
        + "    tool_number = 3\n"
        + method("tool_a")
    )
    assert [name for name, _ in names(source)] == ["b", "a"]


def test_a_method_hides_those_that_python_would_not_call() -> None:
    source = (
        "class Low:\n" + method("tool_a", "low") + method("tool_b", "low")
        + "class High:\n" + method("tool_a", "high") + method("tool_c", "high")
        + "class Middle(High):\n" + method("tool_b", "middle")
        + "class DeskEnv(Middle, Low, Unknown, module.Other, ToolEnv):\n"
        + method("tool_d", "first") + method("tool_d", "own")
    )  # fmt: skip
    found = dict(names(source))
    assert found == {"d": "own", "b": "middle", "a": "high", "c": "high"}
    env = plain(source.replace(", Unknown, module.Other", "").replace("ToolEnv", "ToolEnv, object"))
    assert {name: getattr(env, f"tool_{name}").__doc__ for name in found} == found


def test_a_base_of_several_comes_behind_all_of_them() -> None:
    source = (
        "class Root:\n" + method("tool_a", "root")
        + "class Left(Root):\n    pass\n"
        + "class Right(Root):\n" + method("tool_a", "right")
        + "class DeskEnv(Left, Right):\n    pass\n"
    )  # fmt: skip
    assert names(source) == [("a", "right")]


def test_classes_that_derive_from_each_other_are_read_all_the_same() -> None:
    source = "class One(DeskEnv):\n    pass\nclass DeskEnv(One):\n" + method("tool_a")
    assert names(source) == [("a", "Do.")]


def test_a_problem_hides_only_the_tool_that_has_it() -> None:
    source = (
        "class Base:\n" + method("tool_get") + method("tool_get_all")
        + "class DeskEnv(Base, ToolEnv):\n"
        + "    def tool_get_all(self, x) -> str:\n        'Do.'\n"
    )  # fmt: skip
    found, problems = read(source)
    assert [item["function"]["name"] for item in found] == ["get"]
    assert [(item.line, item.message) for item in problems] == [
        (7, "tool_get_all: parameter 'x' needs a type")
    ]


@pytest.mark.parametrize("name", ["tool_", "tool_größe", "tool_schemas", f"tool_{'x' * 65}"])
def test_a_name_that_no_schema_may_have_is_a_problem(name: str) -> None:
    found, problems = read("class DeskEnv(ToolEnv):\n" + method(name))
    assert found == []
    assert "needs another name" in problems[0].message


def test_lone_surrogates_do_not_get_into_a_schema() -> None:
    found = read_tool(
        "self, x: int", '"""Say \\ud800.\n\n        Args:\n            x: \\udfff\n        """'
    )
    assert "?" in found["description"]
    json.dumps(found, ensure_ascii=False).encode()


# --- any type ---

leaves = st.sampled_from(
    [
        ("str", "a"),
        ("int", 3),
        ("float", 1.5),
        ("float", 2),
        ("bool", True),
        ("None", None),
        ("Any", {"a": [1]}),
        ("list", [1, "a"]),
        ("dict", {"k": None}),
        ("Literal['u', 'v']", "v"),
        ("Literal[4, 5]", 4),
    ]
)


def wider(inner: st.SearchStrategy[tuple[str, Any]]) -> st.SearchStrategy[tuple[str, Any]]:
    return st.one_of(
        inner.map(lambda pair: (f"list[{pair[0]}]", [pair[1], pair[1]])),
        inner.map(lambda pair: (f"dict[str, {pair[0]}]", {"key": pair[1]})),
        inner.map(lambda pair: (f"Optional[{pair[0]}]", pair[1])),
        st.tuples(inner, inner).map(lambda two: (f"Union[{two[0][0]}, {two[1][0]}]", two[1][1])),
    )


types = st.recursive(leaves, wider, max_leaves=5)
FORM = '''
from typing import Any, Literal, Optional, Union

class AnyEnv(ToolEnv):
    """Any."""
    def setup(self, seed):
        self.instruct("Go.", lambda: False)
        return ""

    def tool_take(self, x: {type}) -> str:
        """Take it."""
        self.taken = x
        return "taken"
'''


@given(types)
def test_a_value_of_a_type_is_taken_and_one_that_is_none_is_not(pair: tuple[str, Any]) -> None:
    spelled, value = pair
    found = read_tool(f"self, x: {spelled}")
    assert schema_problem({"type": "function", "function": found}) == ""
    env = plain(FORM.replace("{type}", spelled))
    env.reset(0)
    assert env.step(one_call("take", {"x": value}))[0] == "taken"
    assert env.taken == value
    if "Any" not in spelled and "list" not in spelled:
        assert "argument 'x' takes" in env.step(one_call("take", {"x": [[["no"]]]}))[0]


@given(st.text(max_size=60))
def test_any_text_for_a_type_is_a_schema_or_a_problem(text: str) -> None:
    found = read_tool(f"self, x: {text!r}")
    if not isinstance(found, str):
        assert schema_problem({"type": "function", "function": found}) == ""
