"""The stages ``compare`` and ``tune``, as entry points of ``ldl.stages``; their modules are imported when they run."""

from ldl.command.stages import StageEntry

COMPARE = StageEntry(
    "ldl.search.compare:compare",
    "the candidates of a file, such as -c configs/compare/tabular.yaml, on the same folds",
    "candidates",
    "configs/compare/tabular.yaml",
)
TUNE = StageEntry(
    "ldl.search.tune:tune",
    "hyperparameters of a search space, such as -c configs/tune/tabular_ldlf.yaml beside the run's",
    "tune",
    "configs/tune/tabular_ldlf.yaml",
)
