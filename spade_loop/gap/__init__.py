"""Where an agent's frontier lies: every environment with and without its hint, on the same seeds."""
