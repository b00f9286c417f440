"""Label embedding by multi-scale locality preservation (Peng et al. 2018)."""
