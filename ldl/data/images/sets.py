"""Public sets of images with votes: FER+ and CIFAR-10H."""

from __future__ import annotations

from typing import Literal

from ldl.collective import process_rank
from ldl.data.images.listed import ImageLDL, ListedImages, Listing
from ldl.data.sources import check_set
from ldl.errors import LDLError
from ldl.options import option, options
from ldl.tables.csv_table import read_csv

EMOTIONS = ("neutral", "happiness", "surprise", "sadness", "anger", "disgust", "fear", "contempt")
NO_EMOTION = ("unknown", "NF")
"""FER+'s labels of images without an emotion to see, and without a face."""
FOLDERS = {
    "Training": ("train", "FER2013Train"),
    "PublicTest": ("val", "FER2013Valid"),
    "PrivateTest": ("test", "FER2013Test"),
}
"""Part of the split and folder of the images, by FER+'s column ``Usage``."""


@options
class FERPlus(ImageLDL):
    """FER+ (Barsoum et al., ICMI 2016): ten votes for an emotion on each of 35,887 grey faces of 48 x 48 pixels.

    Labels are the eight emotions. As in the paper, images with most votes for ``unknown`` or ``NF`` (no face) are left
    out, and so are such votes on the other images. Single votes stay, which the paper removes as outliers.

    Protocol: ``published`` trains on Training, validates on PublicTest and tests on PrivateTest.

    Args:
        extra_labels: ``keep`` makes ``unknown`` and ``NF`` labels too, and leaves out no image for them.
        missing_images: Whether to leave out listed images that are not on the disk, or to raise an error.
    """

    path: str = "ferplus"
    crop_size: int = 48
    extra_labels: Literal["remove", "keep"] = option(default="remove", role="label")
    missing_images: Literal["leave_out", "error"] = option(default="leave_out", role="fold")
    protocols = {"published": ListedImages.protocols["published"]}
    protocol = "published"
    path_column = split_column = group_key = None
    votes_column = votes = item_column = votes_item_column = rater_column = vote_column = raters = None
    label_type = "auto"
    duplicates = multiple = unknown_items = "error"
    rater_columns = rater_features = label_order = no_vote = ()
    label_columns = ()  # type: tuple[str, ...]

    def read(self) -> Listing:
        """Read ``fer2013new.csv``. Raises LDLError, also for images that are not there, if they must be."""
        folder = self.locate()
        file = folder / "fer2013new.csv"
        check_set(file.is_file(), "FERPlus", file)
        labels = [*EMOTIONS, *NO_EMOTION]
        table = read_csv(file)
        counts = table.numbers(labels)
        frame = table.frame(["Usage", "Image name"], dtype=str, na_filter=False)
        if unknown := set(frame["Usage"]) - FOLDERS.keys():
            raise LDLError(f"{file}: Usage {min(unknown)!r} is none of {', '.join(FOLDERS)}")
        parts, folders = zip(*frame["Usage"].map(FOLDERS)) if len(frame) else ((), ())
        frame = frame.assign(split=parts, path=[f"{a}/{b}" for a, b in zip(folders, frame["Image name"])])
        frame[labels] = counts
        # Rows without a name have no image.
        present = [bool(name) and (folder / path).is_file() for name, path in zip(frame["Image name"], frame["path"])]
        lines = [f"{sum(present):,} of {len(frame):,} listed images are there"]
        if not all(present) and self.missing_images == "error":
            first = frame["path"][[not exists for exists in present]].iloc[0]
            raise LDLError(
                f"{file}: {lines[0]}, the first that is not is {first}; add them, or leave them out with "
                "--data.missing_images leave_out"
            )
        frame = frame[present]
        if (again := frame["path"].duplicated()).any():
            lines.append(f"{again.sum():,} are listed again and left out, such as {frame['path'][again].iloc[0]}")
            frame = frame[~again]
        if self.extra_labels == "remove":
            seen = frame[list(EMOTIONS)].max(axis=1) >= frame[list(NO_EMOTION)].max(axis=1)
            lines.append(f"{(~seen).sum():,} have most votes for {' or '.join(NO_EMOTION)} and are left out")
            frame, labels = frame[seen], list(EMOTIONS)
        if process_rank() == 0:
            print(f"FER+: {'; '.join(lines)}", flush=True)
        self.label_columns = tuple(labels)
        return Listing(frame.reset_index(drop=True), folder, str(file), "path", "split", table=table)


CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@options
class CIFAR10H(ImageLDL):
    """CIFAR-10H (Peterson et al., ICCV 2019): 47 to 63 votes for a class on each of CIFAR-10's 10,000 test images.

    ``counts.csv`` has the columns ``path`` and ten counts; images are 32 x 32 pixels.

    Protocols: ``random_kfold`` (ten folds of random images).
    """

    path: str = "cifar10h/counts.csv"
    crop_size: int = 32
    protocols = {"random_kfold": ListedImages.protocols["random_kfold"]}
    protocol = "random_kfold"
    path_column = "path"
    split_column = group_key = None
    label_columns = CLASSES
    votes_column = votes = item_column = votes_item_column = rater_column = vote_column = raters = None
    label_type = "auto"
    duplicates = multiple = unknown_items = "error"
    rater_columns = rater_features = label_order = no_vote = ()
