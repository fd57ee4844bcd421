"""The designer: how environments are asked for, read out of replies, mended and admitted."""
