"""What a person sees of a run: the live display, the summary at the end, and the page `report.html`."""
