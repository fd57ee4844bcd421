"""Exceptions of spade_loop: our failures and the user's mistakes.

SpadeLoopError
├── ConfigError        (ValueError)    a recipe or an override is wrong; names the dotted key
├── CorpusError        (ValueError)    the corpus file is missing or a line of it is wrong
├── BlueprintError     (ValueError)    a designer's specification does not meet its schema
├── ModelError         (RuntimeError)  a model is not there, or its weights are not those we expect
│   └── ContextError                   a chat does not fit into a model's context
├── BatchError         (RuntimeError)  a training batch breaks an invariant: a defect of ours
├── RunStateError      (RuntimeError)  a run directory cannot be written, read or resumed
├── ResourceError      (RuntimeError)  memory or disk is full
├── WorldError         (RuntimeError)  another process of the run failed, or is gone
└── MissingExtraError  (ImportError)   an optional dependency is not installed
"""

from __future__ import annotations


class SpadeLoopError(Exception):
    """Root of everything that spade_loop raises on purpose."""


class ConfigError(SpadeLoopError, ValueError):
    """A recipe or an override is wrong."""


class CorpusError(SpadeLoopError, ValueError):
    """The corpus is missing or malformed."""


class BlueprintError(SpadeLoopError, ValueError):
    """A designer's specification does not meet its schema."""


class ModelError(SpadeLoopError, RuntimeError):
    """A model is not there, or its weights are not those we expect."""


class ContextError(ModelError):
    """A chat does not fit into a model's context."""


class BatchError(SpadeLoopError, RuntimeError):
    """A training batch breaks an invariant."""


class RunStateError(SpadeLoopError, RuntimeError):
    """A run directory cannot be written, read or resumed."""


class ResourceError(SpadeLoopError, RuntimeError):
    """Memory or disk is full; the message says what sets how much is needed, and how to go on."""


class WorldError(SpadeLoopError, RuntimeError):
    """Another process of the run failed, or is gone."""


class MissingExtraError(SpadeLoopError, ImportError):
    """An optional dependency is not installed; the message says what to install."""
