"""The dry run of a set of faces: its names and tables, the group leakage of its protocols, and lists of releases."""

from __future__ import annotations

from pathlib import Path

from ldl.command.options import CommandParser, check_replaceable
from ldl.data.images.records import ImageRecords, SplitProtocol
from ldl.errors import LDLError, did_you_mean, explaining
from ldl.faces.ages import FGNET, FaceFolder, UTKFace
from ldl.faces.lists import write_face_list
from ldl.faces.module import Faces
from ldl.faces.morph import Morph
from ldl.faces.pointing04 import Pointing04
from ldl.faces.releases import MORPH_NAMES, RELEASES, Release, names_digest, summarize_faces
from ldl.run.output import silence

FACE_MODULES: dict[str, type[Faces]] = {cls.__name__: cls for cls in (FGNET, UTKFace, Morph, Pointing04, FaceFolder)}


def faces(args: list[str]) -> None:
    """Report the content of a set of faces and its group leakage.

    Names and tables are read, and no image is decoded.

    SET is a data module: FGNET, UTKFace, Morph, Pointing04 or FaceFolder. SET can also be a release, for which --out
    writes a list for FaceFolder: agedb, afad, appa-real, appa-real-true, clap2016, lap2015 or imdb-clean. SET benchmark
    needs --list, the published list of any of them.
    """
    parser = CommandParser("faces", faces.__doc__)
    parser.add_argument("set", metavar="SET", help="a data module, or a release")
    parser.add_argument("folder", type=Path, help="its folder; for FaceFolder its list")
    parser.add_argument("--out", type=Path, metavar="FILE.csv", help="write the list of a release for FaceFolder")
    parser.add_argument("--list", type=Path, metavar="FILE.json", help="the benchmark's list of the set")
    parser.add_argument("--protocol", help="report the folds of this one only")
    parser.add_argument(
        "--split_list", type=Path, help="published list of the protocol: a file, or a folder of several"
    )
    parser.add_argument("--folds", type=int, default=5, help="folds of protocols without a fixed number (%(default)s)")
    parser.add_argument("--names", type=Path, metavar="FILE.txt", help="write the names of all images")
    options = parser.parse_args(args)
    silence()
    sets = {name.lower(): name for name in (*RELEASES, *FACE_MODULES)}
    if (name := sets.get(options.set.lower())) is None:
        near = did_you_mean(options.set, sets.values())
        raise LDLError(f"no set of faces {options.set!r}{near}; one of {', '.join(sets.values())}")
    if options.folds < 2:
        raise LDLError(f"--folds {options.folds} must be at least 2")
    if options.out is not None:
        check_replaceable(options.out, "--out", "path,age")
    release = RELEASES.get(name)
    if options.out is not None and release is None:
        raise LDLError(f"--out is for releases; {name} reads its set as it is, with --data.path {options.folder}")
    module: type[Faces] = FACE_MODULES["FaceFolder" if release else name]
    protocols = _chosen(module, options.protocol, options.split_list)
    if release:
        title, records = f"{release.name} ({release.licence})", release.read(options.folder, options.list)
    else:
        data = module(path=str(options.folder.absolute()))
        title, records = name, data.read()
        data.label_space(records)
    print(f"{title}, {options.folder.absolute()}")
    print("\n".join(summarize_faces(records, protocols, options.folds, options.split_list)))
    if note := _beside_release(name, release, records):
        print(f"\n{note}")
    _write_names(records, options.names)
    if options.out is not None:
        write_face_list(records, options.out)
        published = next((f" --data.protocol {fact}s" for fact in ("part", "folder") if fact in records.facts), "")
        print(f"\n{options.out}: ldl -c utkface_softmax --data FaceFolder --data.path {options.out}{published}")


def _chosen(module: type[Faces], protocol: str | None, split_list: Path | None) -> dict[str, SplitProtocol]:
    if protocol is None:
        if split_list is not None:
            raise LDLError("--split_list is for one protocol; name it with --protocol")
        return module.protocols
    # Building the module checks the protocol.
    module(protocol=protocol, path="")
    return {protocol: module.protocols[protocol]}


def _beside_release(name: str, release: Release | None, records: ImageRecords) -> str:
    """Return how the images differ from the release, if that is known."""
    if name == "Morph":
        same = names_digest(records.files) == MORPH_NAMES
        return "the names are those of the release" if same else "the names are not those of the whole release"
    if release is None or release.pictures in (None, len(records)):
        return ""
    return f"the release has {release.pictures} images, {len(records)} are listed"


def _write_names(records: ImageRecords, file: Path | None) -> None:
    if file is None:
        return
    text = "\n".join(sorted(records.files)) + "\n"
    check_replaceable(file, "--names", "".join(text.split()))
    with explaining(f"the names {file} cannot be written", "give another --names", (OSError,)):
        file.write_text(text, encoding="utf-8")
