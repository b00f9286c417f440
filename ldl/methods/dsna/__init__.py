"""DSNA: discriminative sparse neighbour approximation (Huang, Loy & Tang 2016)."""
