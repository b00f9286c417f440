"""Edges of BSDS500 (Dollar & Zitnick 2015; Huang, Loy & Tang 2016)."""
