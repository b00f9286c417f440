"""Label distribution learning forests (Shen et al. 2017) and networks (Gao et al. 2017)."""
