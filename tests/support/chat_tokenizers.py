"""Small tokenizers for chat templates: byte-level BPE as of Llama 3 and Qwen, and pieces with `▁` as of Mistral."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)
from transformers import PreTrainedTokenizerFast

TEMPLATES = Path(__file__).parents[1] / "data" / "chat_templates"
SPECIAL = [
    "<|im_start|>", "<|im_end|>", "<s>", "</s>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
    "<start_of_turn>", "<end_of_turn>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>", "<|endoftext|>",
]  # fmt: skip
ADDED = ["<think>", "</think>"]
"""Matched like special tokens, but not special: as in Qwen 3."""
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""How Llama 3 and Qwen take a text apart: line breaks stay together wherever they stand."""
_TEXT = [
    Path(__file__).read_text(encoding="utf-8"),
    string.ascii_letters,
    "Pull the lever! [INST] [/INST]",
]


def template(name: str) -> str:
    """The source of a template of `tests/data/chat_templates`."""
    return (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")


def byte_tokenizer(source: str | None, **tokens: str | None) -> PreTrainedTokenizerFast:
    """Byte-level: every text comes back as it was. `tokens` overrides bos, eos and pad."""
    bare = Tokenizer(models.BPE())
    bare.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bare.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bare.train_from_iterator(_TEXT, trainer)
    return _wrap(bare, source, tokens)


def piece_tokenizer(source: str | None, **tokens: str | None) -> PreTrainedTokenizerFast:
    """Pieces: a `▁` is put before whatever is encoded, characters that were never seen become `<unk>`."""
    bare = Tokenizer(models.BPE(unk_token="<unk>"))
    bare.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    bare.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse()])
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<unk>", *SPECIAL], show_progress=False
    )
    bare.train_from_iterator(_TEXT, trainer)
    return _wrap(bare, source, {"unk_token": "<unk>", **tokens})


def _wrap(
    bare: Tokenizer, source: str | None, tokens: dict[str, str | None]
) -> PreTrainedTokenizerFast:
    defaults: dict[str, Any] = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}
    named = {k: v for k, v in {**defaults, **tokens}.items() if v is not None}
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=bare, additional_special_tokens=SPECIAL, padding_side="left", **named
    )
    wrapped.add_tokens(ADDED)
    if source is not None:
        wrapped.chat_template = source
    return wrapped
