"""Worker processes: spawned, deaf to Ctrl-C, and gone when their parent is."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from typing import Any


@contextmanager
def worker_pool(workers: int) -> Iterator[Callable[..., Future[Any]]]:
    """What submits a call to spawned processes; leaving the block drops calls not begun."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_follow_parent)

    def submit(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        # The pool starts a process when a call needs one. It inherits the mask: Ctrl-C reaches the parent
        # alone, which then shuts its workers down.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return pool.submit(function, *arguments)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    try:
        # Its start unblocks SIGINT, so it must not happen inside the masked part.
        resource_tracker.ensure_running()
        yield submit
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
