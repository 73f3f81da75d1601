"""Worker processes: spawned, deaf to Ctrl-C, and gone when their parent is."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait


@contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of spawned processes; leaving the block early drops what has not begun."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_follow_parent)
    try:
        # Workers inherit the mask: Ctrl-C reaches the parent alone, which then shuts them down.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            pool.submit(os.getpid)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _follow_parent() -> None:
    """End this process when the parent dies: a killed parent cannot shut its workers down."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
