"""Makes the checkpoints of this folder; it ran once, on the code before the move of modules (commit 0bc56bf).

    cd CHECKOUT_OF_0bc56bf && PYTHONPATH=. python THIS_FILE [NAME ...]

NAME.ckpt is what the trainer saved after an epoch, NAME.npz what the model of that time predicted, and for ``ldlf``
also what it predicted after one epoch more. Networks hold patterns that repeat, which keeps their files small.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from ldl.labels import LabelSpace

FOLDER = Path(__file__).parent
PATTERN = 2048


class Problem(pl.LightningDataModule):
    """A small problem: ``rows`` (32, 6), ``bags`` (32, 3, 6), ``pictures`` (32, 3, 32, 32) or bags of such."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        # This generator gives the same numbers in every version of numpy.
        draw = np.random.RandomState(0)
        shapes = {"rows": (6,), "bags": (3, 6), "pictures": (3, 32, 32), "picture_bags": (2, 3, 32, 32)}
        self.shape = shapes[kind]
        if kind.startswith("picture"):
            self.inputs = torch.from_numpy(draw.randint(0, 256, (32, *self.shape)).astype(np.uint8))
        else:
            self.inputs = torch.from_numpy(draw.standard_normal((32, *self.shape)).astype(np.float32))
        plain = self.inputs.float().flatten(1)[:, :6]
        scores = (plain - plain.mean(0)) / plain.std(0) @ torch.from_numpy(draw.standard_normal((6, 4))).float()
        self.target = scores.softmax(-1)
        self.halves = torch.stack([self.target[:, :2].sum(1), self.target[:, 2:].sum(1)], 1)

    def build(self, task: Any) -> None:
        """Build a task for these inputs and four ages, or where the head takes bags for two classes."""
        self.takes_bags = task.head.takes_bags
        classes = LabelSpace.nominal(["no", "yes"])
        labels = classes if self.takes_bags else LabelSpace.ordinal([10, 20, 30, 40], "years")
        task.build(labels, self.shape, load_weights=False)

    def _loader(self) -> DataLoader[Any]:
        rows = [
            {"input": x, "target": y, "weight": torch.tensor(1.0), "index": torch.tensor(row)}
            for row, (x, y) in enumerate(zip(self.inputs, self.halves if self.takes_bags else self.target))
        ]
        return DataLoader(rows, batch_size=8)  # type: ignore[arg-type]

    def train_dataloader(self) -> DataLoader[Any]:
        return self._loader()

    def fit_dataloader(self) -> DataLoader[Any]:
        return self._loader()


def train(task: Any, data: Problem, epochs: int, checkpoint: Path | None = None) -> pl.Trainer:
    """Train without shuffling, from a checkpoint or anew."""
    data.build(task)
    trainer = pl.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
        enable_checkpointing=False, use_distributed_sampler=False,
    )  # fmt: skip
    trainer.fit(task, datamodule=data, ckpt_path=checkpoint, weights_only=True)
    return trainer


def sgd(groups: Any) -> torch.optim.Optimizer:
    """The optimiser of all of them."""
    return torch.optim.SGD(groups, lr=0.1)


@torch.no_grad()
def predictions(task: Any, data: Problem) -> dict[str, np.ndarray]:
    """``distribution``, of every fourth pixel of a map, and ``value`` where the head has an estimate of its own."""
    task.eval()
    distribution, value = task.head.predict(task.features({"input": data.inputs[:8]}))
    if distribution.ndim == 4:
        distribution = distribution[:, ::4, ::4]
    return {"distribution": distribution.numpy()} | ({} if value is None else {"value": value.numpy()})


def repeat_patterns(state: dict[str, Tensor]) -> None:
    """Let all weights of a network be views of a few numbers, which are stored once."""
    draw = np.random.RandomState(1)
    weights = torch.from_numpy(draw.uniform(-0.14, 0.14, PATTERN).astype(np.float32))
    scales = torch.from_numpy(draw.uniform(0.5, 1.5, PATTERN).astype(np.float32))
    count = torch.tensor(1)
    for name, tensor in state.items():
        if not name.startswith("backbone."):
            continue
        steps = [max(1, (PATTERN // 8 - 1) // size) for size in tensor.shape]
        scale = tensor.ndim == 1 and name.endswith(("weight", "var"))
        state[name] = (scales if scale else weights).as_strided(tensor.shape, steps) if tensor.ndim else count


def main() -> None:
    from ldl.backbone import Identity, Timm
    from ldl.each_instance import EachInstance
    from ldl.edges.backbone import PixelFeatures
    from ldl.haar import Haar
    from ldl.hog import HOG

    from ldl import heads
    from ldl.task import Task

    few = {"trees": 3, "depth": 3, "seed": 1}
    models: dict[str, tuple[Any, Any, str]] = {
        "softmax": (heads.Softmax("ce", hidden=[5]), Identity(), "rows"),
        "ldlf": (heads.LDLF(trees=2, depth=3, outputs=5, batches=3), Identity(), "rows"),
        "structrf": (heads.StructRF(**few), Identity(), "rows"),
        "costsensitiveforest": (heads.CostSensitiveForest(**few), Identity(), "rows"),
        "dsna": (heads.DSNA(**few), Identity(), "rows"),
        "mslp": (heads.MSLP(positives=5, negatives=3, kernel="rbf", landmarks=10), Identity(), "rows"),
        "aaknn": (heads.AAKNN(3), Identity(), "rows"),
        "maxent": (heads.MaxEnt(l2=0.01, iterations=20), Identity(), "rows"),
        "meanpredictor": (heads.MeanPredictor(), Identity(flatten=True), "rows"),
        "milboost": (heads.MILBoost(rounds=5, seed=1), Identity(), "bags"),
        "mplboost": (heads.MPLBoost(groups=2, rounds=4, clustered=2, seed=1), Identity(), "bags"),
        "bagged": (heads.Bagged(heads.Softmax(hidden=[4]), "nor"), Identity(), "bags"),
        "timm": (heads.Softmax(), Timm("test_resnet", lr=0.001, mirror=True), "pictures"),
        "pixel_features": (heads.Softmax(), PixelFeatures("test_resnet", False, 4, [1.0, 0.5]), "pictures"),
        "haar": (heads.AAKNN(3), Haar(20, seed=2), "pictures"),
        "haar_windows": (heads.MILBoost(rounds=3, seed=1), Haar(20, window=24, stride=4, seed=2), "pictures"),
        "hog": (heads.AAKNN(3), HOG(9, 16, 2), "pictures"),
        "each_instance": (heads.Bagged(), EachInstance(Timm("test_resnet", "auto")), "picture_bags"),
    }
    for name in sys.argv[1:] or models:
        head, backbone, kind = models[name]
        pl.seed_everything(0, verbose=False)
        data = Problem(kind)
        task = Task(head, backbone, sgd)
        trains = kind in ("rows", "bags") or name.startswith("haar") or name == "hog"
        if not trains:
            data.build(task)
            trainer = pl.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
            trainer.strategy.connect(task)
        else:
            trainer = train(task, data, 1)
        file = FOLDER / f"{name}.ckpt"
        trainer.save_checkpoint(file)
        if not trains:
            checkpoint = torch.load(file, weights_only=True)
            repeat_patterns(checkpoint["state_dict"])
            torch.save(checkpoint, file)
        task = Task.load_from_checkpoint(file)
        found = predictions(task, data)
        if name == "ldlf":
            task = Task(heads.LDLF(trees=2, depth=3, outputs=5, batches=3), Identity(), sgd)
            train(task, data, 2, file)
            found["resumed"] = predictions(task, data)["distribution"]
        np.savez_compressed(FOLDER / f"{name}.npz", **found)  # type: ignore[arg-type]
        print(name, file.stat().st_size, found["distribution"].std(0).mean())


if __name__ == "__main__":
    main()
