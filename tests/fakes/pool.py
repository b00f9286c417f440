"""A small pool on a small table, as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

RUN = """
model:
  head:
    class_path: Pool
    init_args:
      folds: 3
      members:
        - {class_path: StructRF, init_args: {trees: 5, depth: 4, out_of_bag: false}}
        - class_path: Trained
          init_args: {epochs: 4, repeats: 3, scaling: standard, head: {class_path: Softmax, init_args: {hidden: [4]}}}
        - class_path: Trained
          init_args:
            head: {class_path: LDLF, init_args: {trees: 2, depth: 3, batches: 2}}
            backbone: {class_path: Tabular, init_args: {members: 2, hidden: [8], embedding: 4, bins: 4}}
            epochs: 4
            repeats: 3
            scaling: ranks
            validation: 0.2
        - MaxEnt
data: {class_path: TabularLDL, init_args: {path: table.npz, folds: 2, scaling: none, val_fraction: 0}}
trainer: {max_epochs: 1, accelerator: cpu, enable_progress_bar: false, log_every_n_steps: 1}
wandb: {mode: disabled}
"""


def pool_run(folder: Path) -> Path:
    """``run.yaml`` and the table it names, in a folder that there is."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(91, 4))
    scores = np.exp(features[:, :3] + features[:, 1:] ** 2 + rng.normal(size=(91, 3)))
    np.savez(folder / "table.npz", features=features, labels=scores / scores.sum(1, keepdims=True))
    (folder / "run.yaml").write_text(RUN)
    return folder
