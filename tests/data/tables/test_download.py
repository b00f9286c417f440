"""Downloads of public sets from a local server: right, broken off, altered, missing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from ldl.data import TabularLDL, sources
from ldl.data.sources import SETS, download_set, git_blob
from ldl.errors import LDLError


class Handler(BaseHTTPRequestHandler):
    """Serves ``content`` with ranges; breaks off after ``breaks_at`` bytes, once."""

    content = b""
    breaks_at: int | None = None
    ranges = True
    asked: list[str | None] = []

    def do_GET(self) -> None:
        kind = type(self)
        kind.asked.append(self.headers.get("Range"))
        if not self.path.endswith("SJAFFE.mat"):
            self.send_error(404)
            return
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1]) if kind.ranges else 0
        if start >= len(kind.content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(kind.content) - start))
        self.end_headers()
        end, kind.breaks_at = kind.breaks_at, None
        self.wfile.write(kind.content[start:end])

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Handler]]:
    rng = np.random.default_rng(0)
    savemat(tmp_path / "set.mat", {"features": rng.normal(size=(40, 300)), "labels": rng.dirichlet(np.ones(6), 40)})
    kind = type("Own", (Handler,), {"content": (tmp_path / "set.mat").read_bytes(), "asked": []})
    monkeypatch.setitem(SETS, "SJAFFE.mat", git_blob(tmp_path / "set.mat"))
    running = ThreadingHTTPServer(("127.0.0.1", 0), partial(kind))
    monkeypatch.setattr(sources, "MIRROR", f"http://127.0.0.1:{running.server_port}")
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield kind
    running.shutdown()
    running.server_close()


def test_checksums_are_gits(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"hello\n")
    assert git_blob(tmp_path / "a") == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_the_real_files_have_the_published_checksums(ldl_data: Path) -> None:
    for name in set(SETS) - {"Human_Gene.mat", "Natural_Scene.mat"}:
        assert git_blob(ldl_data / "ldl" / name) == SETS[name], name


def test_a_missing_set_is_downloaded_once(server: type[Handler], tmp_path: Path) -> None:
    for _ in range(2):
        data = TabularLDL("ldl/SJAFFE.mat", root=str(tmp_path), download=True)
        data.setup()
        assert data.size == 40 and len(data.labels) == 6
    assert server.asked == [None]
    assert not (tmp_path / "ldl" / "SJAFFE.mat.part").exists()


def test_an_altered_file_is_refused_and_not_kept(server: type[Handler], tmp_path: Path) -> None:
    server.content = server.content[:-1] + b"x"
    with pytest.raises(LDLError, match="is not the published file: checksum [0-9a-f]{40}, not [0-9a-f]{40}"):
        download_set("SJAFFE.mat", tmp_path / "SJAFFE.mat")
    assert not list(tmp_path.glob("SJAFFE.mat*[!k]"))


def test_two_at_once_download_once(server: type[Handler], tmp_path: Path) -> None:
    threads = [threading.Thread(target=download_set, args=("SJAFFE.mat", tmp_path / "SJAFFE.mat")) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "SJAFFE.mat").read_bytes() == server.content and len(server.asked) == 1


def test_what_cannot_be_had_is_said(
    server: type[Handler], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(LDLError, match="Movie.mat cannot be downloaded: HTTP Error 404"):
        download_set("Movie.mat", tmp_path / "Movie.mat")
    monkeypatch.setattr(sources, "MIRROR", "http://127.0.0.1:9")
    with pytest.raises(LDLError, match="SJAFFE.mat cannot be downloaded: .*refused.*or put it at"):
        download_set("SJAFFE.mat", tmp_path / "SJAFFE.mat")
    with pytest.raises(LDLError, match="the public set 'SJAFE.mat' must be one of .*SJAFFE"):
        TabularLDL("ldl/SJAFE.mat", root=str(tmp_path), download=True).setup()
    (tmp_path / "file").write_text("")
    with pytest.raises(LDLError, match="cannot be written"):
        download_set("SJAFFE.mat", tmp_path / "file" / "SJAFFE.mat")
