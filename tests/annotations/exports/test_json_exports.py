"""LeWiDi as released, where ``LDL_DATA`` has it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from ldl.annotations import read_export
from ldl.errors import LDLError
from ldl.validation.files import data_folder

TEXT = data_folder() / "text"
needs_text = pytest.mark.skipif(not (TEXT / "csc").is_dir(), reason="needs LDL_DATA with text/")


@needs_text
def test_md_agreement_as_released() -> None:
    files = [TEXT / "md_agreement" / f"MD-Agreement_{split}.json" for split in ("train", "dev", "test")]
    votes = read_export(files).votes
    assert dict(Counter(votes.drop_duplicates("item")["split"])) == {"train": 6592, "dev": 1104, "test": 3055}
    train = votes[votes["split"] == "train"]
    assert len(train) == 32960 and train["rater"].nunique() == 670 and set(votes["label"]) == {"0", "1"}
    tweets = json.loads(files[0].read_text())
    for key in ("1", "6592"):
        item = train[train["item"] == f"train-{key}"]
        assert ",".join(item["label"]) == tweets[key]["annotations"]
        assert ",".join(item["rater"]) == tweets[key]["annotators"]
        assert set(item["text"]) == {tweets[key]["text"]}


@needs_text
def test_csc_as_released() -> None:
    folder: Path = TEXT / "csc"
    export = read_export([folder / "CSC_dev.json", folder / "CSC_annotators_meta.json"])
    votes = export.votes
    assert len(votes) == 3186 and votes["item"].nunique() == 704 and votes["rater"].nunique() == 850
    assert Counter(votes["label"]) == {"1": 1197, "2": 497, "3": 413, "4": 506, "5": 374, "6": 199}
    assert list(votes) == ["item", "rater", "label", "split", "lang", "context+speaker", "context", "response"]
    assert any("CSC_annotators_meta.json holds no annotations and is left out" in note for note in export.notes)
    with pytest.raises(LDLError, match="no vote is left; 3224 without an answer are left out"):
        read_export(folder / "CSC_test_clear.json")
