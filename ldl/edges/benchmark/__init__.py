"""The benchmark of BSDS500: matching, evaluation and votes of annotators."""
