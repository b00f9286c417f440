"""Where the known data sets come from, under which licence, and how they lie on disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ldl.data.tables.download import SETS
from ldl.errors import LDLError


@dataclass(frozen=True)
class Source:
    """A data set: its name, where it is to be had, its licence, and its layout below the data folder."""

    name: str
    where: str
    licence: str
    layout: str


SOURCES = {
    "FGNET": Source(
        "FG-NET",
        "https://yanweifu.github.io/FG_NET_data/",
        "research only",
        "FGNET/images/001A02.JPG (person, A, age) and FGNET/points/001a02.pts (68 landmarks)",
    ),
    "UTKFace": Source(
        "UTKFace",
        "https://susanqq.github.io/UTKFace/ (aligned and cropped)",
        "non-commercial research",
        "UTKFace/25_0_2_20170116174525125.jpg.chip.jpg (age first)",
    ),
    "LFW": Source(
        "Labeled Faces in the Wild",
        "http://vis-www.cs.umass.edu/lfw/ (lfw.tgz)",
        "research",
        "lfw/Aaron_Eckhart/Aaron_Eckhart_0001.jpg",
    ),
    "Morph": Source(
        "MORPH II",
        "the University of North Carolina Wilmington (Face Aging Group)",
        "by contract, academic or commercial",
        "MORPH/morph_2008_nonCommercial.csv and MORPH/Album2/009055_1M54.JPG",
    ),
    "Pointing04": Source(
        "Pointing'04",
        "http://crowley-coutaz.fr/Head%20Pose%20Image%20Database.html",
        "research",
        "Pointing04/Person01/personne01146+0+0.jpg and a .txt with the face's box beside it",
    ),
    "BSDS500": Source(
        "BSDS500",
        "https://github.com/BIDS/BSDS500",
        "non-commercial research and education",
        "BSDS500/data/images/train/NAME.jpg and BSDS500/data/groundTruth/train/NAME.mat, also val and test",
    ),
    "mnist.npz": Source(
        "MNIST",
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
        "CC BY-SA 3.0",
        "mnist.npz with x_train and y_train",
    ),
    "FG-NET_AAM.mat": Source(
        "FG-NET's appearance features",
        "Geng's page, and those who mirror it, such as https://github.com/SpriteMisaka/PyLDL",
        "academic use; cite Geng (IEEE TKDE 2016)",
        "ldl/FG-NET_AAM.mat with features and age",
    ),
    "RotatedDigits": Source("scikit-learn's digits", "scikit-learn", "UCI's set (Alpaydin & Kaynak 1998), free", ""),
}
"""By the class of the data module, or the name of the file."""

SOURCES["ShiftedDigits"] = SOURCES["MixedDigits"] = SOURCES["mnist.npz"]
SOURCES["ShiftedFaces"] = SOURCES["PosedFaces"] = Source(
    "UTKFace on BSDS500",
    f"{SOURCES['UTKFace'].where} and {SOURCES['BSDS500'].where}",
    SOURCES["BSDS500"].licence,
    f"{SOURCES['UTKFace'].layout}; {SOURCES['BSDS500'].layout}",
)

for _file in SETS:
    SOURCES[_file] = Source(
        _file.removesuffix(".mat"),
        "a run with --data.download true, which fetches it",
        "academic use; cite Geng (IEEE TKDE 2016)",
        f"ldl/{_file}",
    )


def known_source(data: object) -> Source | None:
    """The source of a data module's set: by its file, or its class; None of a set that is somebody's own."""
    file = Path(str(getattr(data, "path", None) or "")).name
    names = [file, *(base.__name__ for base in type(data).__mro__)]
    return next((SOURCES[name] for name in names if name in SOURCES), None)


def absent(name: str, place: Path, root: Path | None = None, fix: str = "--data.path or --data.root") -> LDLError:
    """What to raise where the set ``name`` of :data:`SOURCES` is not at ``place``: all that one needs to put it there.

    Args:
        name: Class of the data module, or name of the file.
        place: Where it was looked for.
        root: The data folder, where it was looked for below it.
        fix: What names another place.
    """
    known = SOURCES[name]
    variable = os.environ.get("LDL_DATA")
    below = ""
    if root is not None:
        said = f"LDL_DATA={variable}" if variable and Path(variable) == root else "LDL_DATA is not set"
        gone = "" if root.is_dir() else ", which does not exist"
        below = f" below the data folder {root.absolute()}{gone} ({said})"
    return LDLError(
        f"no {known.name} at {place.absolute()}: it lies as {known.layout}{below}; get it from {known.where} "
        f"({known.licence}), or say where it is with LDL_DATA, {fix}"
    )
