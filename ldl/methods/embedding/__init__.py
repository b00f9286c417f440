"""Label embedding: neighbours, kernels, locality preservation (Peng, Tao & Geng 2018)."""
