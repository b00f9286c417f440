"""A data set of pictures with votes: a CSV file of ``path`` and one column a label."""

import cv2
import numpy as np
import torch
from torch import Tensor

from ldl.data import LDLDataModule
from ldl.data.base import Loaded
from ldl.data.pictures import read_picture, same_bytes
from ldl.labels import LabelSpace
from ldl.options import option, options
from ldl.tables.csv_table import read_csv


@options
class VotedPictures(LDLDataModule):
    """Pictures, and how often each label was chosen for them.

    Args:
        path: The CSV file; its pictures are named relative to it.
        side: Pictures are resized to squares of so many pixels.
    """

    path: str = "votes.csv"
    side: int = option(default=64, least=8)

    def load(self) -> Loaded:
        table = read_csv(self.find(self.path))
        labels = LabelSpace.nominal([name for name in table.header if name != "path"])
        votes, names = torch.from_numpy(table.numbers(labels.names)).float(), table.column("path")
        self.files = [table.path.parent / name for name in names]
        votes /= votes.sum(1, keepdim=True)
        return Loaded(labels, {"target": votes}, names=names, copies=same_bytes(self.files))

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        pictures = (cv2.resize(read_picture(self.files[row]), (self.side, self.side)) for row in rows)
        turned = [p[:, ::-1] if train and seed % 2 else p for p, seed in zip(pictures, seeds)]  # equal in any process
        return torch.from_numpy(np.stack(turned)).permute(0, 3, 1, 2)
