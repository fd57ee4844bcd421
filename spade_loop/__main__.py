"""`python -m spade_loop` is `spade-loop`."""

from spade_loop.cli import main

main()
