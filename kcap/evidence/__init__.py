"""Parts of captures as captures of their own: what a filter selects, split, merged, and made fit to be handed on."""
