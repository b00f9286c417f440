"""The benchmark of BSDS500: matching, counting, figures."""
