"""Blueprint families: environments with parameters, for designers that cannot write code."""

from spade_loop.families.catalogue import (
    Blueprint,
    Family,
    designer_schema,
    load_families,
    parameter_vector,
    parse_blueprint,
    random_blueprint,
    render,
)

__all__ = [
    "Blueprint",
    "Family",
    "designer_schema",
    "load_families",
    "parameter_vector",
    "parse_blueprint",
    "random_blueprint",
    "render",
]
