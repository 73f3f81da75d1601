"""Worker processes: spawned, deaf to Ctrl-C, and gone when their parent is; calls in them, in order."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain, islice
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from typing import Any

from epicqa.errors import EpicqaError

Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function that can be pickled, and its arguments."""


class WorkerDied(EpicqaError):
    """A process ended that should not have; what was finished before is as good as ever."""


def in_order(calls: Iterable[Call], workers: int) -> Generator[Any, None, None]:
    """The results of calls, in their order; of one call only, or by one worker, in this process.

    Calls are asked for as there is room for them, some more than there are workers. Closing the iterator
    drops those not begun, and waits for those that were.

    Raises:
        WorkerDied: a worker process did.
    """
    waiting = iter(calls)
    begun = list(islice(waiting, 2))
    # A single call is done sooner than a process starts.
    if workers <= 1 or len(begun) < 2:
        for function, arguments in chain(begun, waiting):
            yield function(*arguments)
        return
    futures: deque[Future[Any]] = deque()
    try:
        with worker_pool(workers) as submit:
            for function, arguments in chain(begun, waiting):
                futures.append(submit(function, *arguments))
                while len(futures) > 2 * workers or (futures and futures[0].done()):
                    yield futures.popleft().result()
            while futures:
                yield futures.popleft().result()
    except BrokenProcessPool:
        raise WorkerDied(
            "a worker process ended early: out of memory, or a script without `if __name__ == '__main__':` "
            "started the work; the same command goes on, with 1 worker it needs no processes"
        ) from None


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
