"""Byte streams out of compressed files; a stream that was cut short is an error, never a short text."""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import IO, cast

import zstandard

from epicqa.errors import EpicqaError

SUFFIXES = (".gz", ".xz", ".zst")
ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)

# Archives of the web and of forums are packed with windows up to this (``zstd --long=31``). A stream holds as
# much as its own window and text need, at most this.
_MAX_WINDOW = 1 << 31
# Bytes unpacked at once: a block of 4 can become 128 KiB, so this many become 32 MiB at most.
_FED = 1 << 10


class _Zstandard(io.RawIOBase):
    """Zstandard frames, one after the other; the library's own reader takes a cut frame for the end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._frame = self._next_frame()
        self._fresh = True
        self._given = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    @staticmethod
    def _next_frame() -> zstandard.ZstdDecompressionObj:
        return zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).decompressobj()

    def readinto(self, target) -> int:  # type: ignore[no-untyped-def]
        while not self._ready:
            if not self._given:
                self._given = self._stream.read(_FED)
            if not self._given:
                if self._fresh:
                    return 0
                raise EOFError("the zstandard stream ends inside a frame")
            self._fresh = False
            self._ready = memoryview(self._frame.decompress(self._given))
            self._given = b""
            if self._frame.eof:
                self._given = self._frame.unused_data
                self._frame = self._next_frame()
                self._fresh = True
        size = min(len(target), len(self._ready))
        target[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size


def plain_name(name: str) -> str:
    """A file name without its compression suffix, lower case; ``.tgz`` is ``.tar.gz``."""
    name = name.lower()
    if name.endswith(".tgz"):
        return name[:-4] + ".tar"
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)


def decompressed(stream: IO[bytes], name: str) -> IO[bytes]:
    """The plain bytes of a stream whose file has this name; reading raises one of ``ERRORS``."""
    name = name.lower()
    if name.endswith((".gz", ".tgz")):
        return cast(IO[bytes], gzip.GzipFile(fileobj=stream, mode="rb"))
    if name.endswith(".xz"):
        return lzma.LZMAFile(stream)
    if name.endswith(".zst"):
        return io.BufferedReader(_Zstandard(stream), 1 << 17)
    return stream


def read_whole(path: Path, expected: str) -> bytes:
    """The plain bytes of a UTF-8 file without a byte order mark, of a compressed one (``SUFFIXES``), too.

    Args:
        path: the file.
        expected: what it should be, in words, for messages.

    Raises:
        EpicqaError: it cannot be read, is damaged or cut short, or is not UTF-8.
    """
    try:
        with path.open("rb") as handle:
            data = decompressed(handle, path.name).read()
    except ERRORS as error:
        reason = getattr(error, "strerror", None) or f"damaged or cut short ({' '.join(str(error).split())})"
        raise EpicqaError(f"{path}: {reason}, expected {expected}") from None
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise EpicqaError(f"{path}:{line}: not UTF-8, expected {expected}") from None
    return data.removeprefix(codecs.BOM_UTF8)
