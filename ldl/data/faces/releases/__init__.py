"""Released sets of faces and ages, each in the layout in which it is handed out, as lists for ``FaceFolder``."""

from __future__ import annotations

from ldl.data.faces.releases.afad import AFAD
from ldl.data.faces.releases.agedb import AGEDB
from ldl.data.faces.releases.appa_real import APPA_REAL, APPA_REAL_TRUE
from ldl.data.faces.releases.benchmark import BENCHMARK
from ldl.data.faces.releases.chalearn import CLAP2016, LAP2015
from ldl.data.faces.releases.imdb_clean import IMDB_CLEAN
from ldl.data.faces.releases.release import Release

__all__ = ["RELEASES", "Release"]

RELEASES: dict[str, Release] = {
    "agedb": AGEDB,
    "afad": AFAD,
    "appa-real": APPA_REAL,
    "appa-real-true": APPA_REAL_TRUE,
    "clap2016": CLAP2016,
    "lap2015": LAP2015,
    "imdb-clean": IMDB_CLEAN,
    "benchmark": BENCHMARK,
}
"""By the name that ``ldl faces`` takes."""
