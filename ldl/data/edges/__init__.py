"""BSDS500 and edge sets of its layout."""
