"""Constrained decoding through xgrammar: which tokens a JSON schema allows next, and what it forces."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from spade_loop.chat import ChatFormat
from spade_loop.completers import JsonSchema
from spade_loop.errors import MissingExtraError, ModelError


class GrammarCompiler:
    """Compiles JSON schemas for one tokenizer; each schema once."""

    def __init__(self, tokenizer: Any, vocab_size: int) -> None:
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size
        self._compiler: Any = None
        self._grammars: dict[str, Grammar] = {}

    def compile(self, schema: JsonSchema) -> Grammar:
        """The grammar of `schema`, compact JSON (no optional white space)."""
        text = json.dumps(schema)
        if text not in self._grammars:
            self._grammars[text] = Grammar(
                self._xgrammar_compiler().compile_json_schema(text, any_whitespace=False)
            )
        return self._grammars[text]

    def _xgrammar_compiler(self) -> Any:
        if self._compiler is None:
            try:
                import xgrammar
            except ImportError as error:
                raise MissingExtraError(
                    "blueprints need xgrammar: pip install 'synthgym[loop]'"
                ) from error
            info = xgrammar.TokenizerInfo.from_huggingface(
                self._tokenizer, vocab_size=self._vocab_size
            )
            self._compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        return self._compiler


class Grammar:
    """A compiled grammar."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def matcher(self) -> Matcher:
        """A fresh position at the grammar's start."""
        return Matcher(self._compiled)


class Matcher:
    """A position in a grammar."""

    def __init__(self, compiled: Any) -> None:
        import xgrammar

        self._matcher = xgrammar.GrammarMatcher(compiled)
        vocab_size = compiled.tokenizer_info.vocab_size
        self._bitmask = xgrammar.allocate_token_bitmask(1, vocab_size)
        self._vocab_size = vocab_size

    def allowed(self) -> npt.NDArray[np.int64]:
        """Ids of the tokens that may come next, ascending."""
        self._matcher.fill_next_token_bitmask(self._bitmask, 0)
        words = self._bitmask.numpy().view(np.uint8)
        bits = np.unpackbits(words, bitorder="little")[: self._vocab_size]
        return np.flatnonzero(bits)

    def accept(self, token: int) -> None:
        """Move on by one token."""
        if not self._matcher.accept_token(token):
            raise ModelError(f"token {token} is not one that the grammar allows here")

    def forced(self, chat: ChatFormat) -> list[int]:
        """Move on through the text that has no alternative; its ids. Empty where there is a choice."""
        ids: list[int] = []
        if not self._matcher.is_terminated():
            text = self._matcher.find_jump_forward_string()
            for token in chat.encode_text(text) if text else ():
                self.accept(token)
                ids.append(token)
        return ids
