"""Structured edges of some images, timed: a process that ``speed.py`` starts in this checkout of ldl and in others.

    PYTHONPATH=CHECKOUT python benchmarks/edges/detecting.py FOREST IMAGES MAPS

FOREST is the state of a head, IMAGES are arrays (.npz). For each line ``THREADS IMAGES-AT-ONCE`` of standard input it
answers seconds an image: of the clock and of the processor, for detection, then with non-maxima suppressed. At the end
of the input it writes the edge maps to MAPS (.npz).
"""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch

from ldl.edges.benchmark.nms import suppress
from ldl.heads import StructuredEdges
from ldl.labels import LabelSpace


def main() -> None:
    """Answer every line."""
    torch.set_num_threads(1)
    state = torch.load(sys.argv[1], weights_only=True)
    images = [torch.from_numpy(image).permute(2, 0, 1)[None] for image in np.load(sys.argv[2]).values()]

    def made(threads: int) -> StructuredEdges:
        head = StructuredEdges(trees=len(state["roots"]), votes=max(1, len(state["roots"]) // 2), threads=threads)
        head.build(3, LabelSpace.nominal(["no edge", "edge"]))
        head.load_state_dict(state)
        # The first image waits for the outlines of all leaves, and for the compiler.
        suppress(edges(head, images[0]))
        return head

    heads: dict[int, StructuredEdges] = {}
    for line in sys.stdin:
        threads, at_once = map(int, line.split())
        head = heads[threads] = heads.get(threads) or made(threads)
        with ThreadPoolExecutor(at_once) as pool:
            plain = seconds(lambda: list(pool.map(lambda image: edges(head, image), images)))  # noqa: B023
            thinned = seconds(lambda: list(pool.map(lambda image: suppress(edges(head, image)), images)))  # noqa: B023
        print(*(part / len(images) for part in (*plain, *thinned)), flush=True)
    np.savez(sys.argv[3], *(edges(next(iter(heads.values())), image) for image in images))


def edges(head: StructuredEdges, image: torch.Tensor) -> np.ndarray:
    """The edge map of one image."""
    return head(image)[0, ..., 1].numpy()


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Of the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


if __name__ == "__main__":
    main()
