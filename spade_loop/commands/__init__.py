"""Commands of `spade-loop`, one module each; `cli` puts them together."""
