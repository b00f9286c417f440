"""Public label distribution sets, downloaded on demand."""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import urllib.error
import urllib.request
from pathlib import Path

from filelock import FileLock

from ldl.errors import LDLError, did_you_mean

SOURCE = "https://raw.githubusercontent.com/SpriteMisaka/PyLDL/082937638e075b35d349a2e69e36219d52512dc8/datasets"
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
"""File names, and their checksums: git's name of their content, which that commit holds."""
SECONDS = 30.0
"""Without a byte for so long, a server counts as gone."""


def download_set(name: str, path: Path) -> None:
    """Download a public set to ``path``.

    What was downloaded when it broke off is kept beside it and continued; the file appears under its name only
    when it is whole and its checksum is right. Processes that ask at the same time wait for the first. ``name`` is
    the set's file name, such as ``SJAFFE.mat``.

    Raises LDLError: no such set, no connection, not the published file, or a folder that cannot be written.
    """
    if name not in SETS:
        raise LDLError(f"{name} is not among the public sets{did_you_mean(name, SETS)}: {', '.join(SETS)}")
    url, part = f"{SOURCE}/{name}", path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{part}.lock"):
            if path.is_file():
                return
            print(f"downloading {url} to {path}", flush=True)
            _fetch(url, part)
            if (found := git_blob(part)) != SETS[name]:
                part.unlink()
                raise LDLError(f"{url} is not the published file: checksum {found}, not {SETS[name]}; try again")
            os.replace(part, path)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError) as error:
        raise LDLError(
            f"{url} cannot be downloaded: {error}; try again, which goes on from there, or put it at {path}"
        ) from None
    except OSError as error:
        raise LDLError(f"{path} cannot be written: {error.strerror}; give another --data.root") from error


def _fetch(url: str, part: Path) -> None:
    """Download to ``part``, from where it ends."""
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=SECONDS)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing is left of the range: all is there
            return
        raise
    with answer, part.open("ab" if answer.status == 206 else "wb") as stream:
        shutil.copyfileobj(answer, stream)
        if answer.length:  # what was promised and did not come
            raise http.client.IncompleteRead(b"", answer.length)


def git_blob(path: Path) -> str:
    """Git's name of a file's content: the SHA-1 of a header with its length, and the content."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: digest).hexdigest()
