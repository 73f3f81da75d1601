"""Text out of the bytes of a web page, in whatever encoding it says or seems to have."""

from __future__ import annotations

import codecs
import re

# WHATWG asks for the first 1,024 bytes; long heads push the declaration further down on real pages.
_HEAD = 4096
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_DECLARED = re.compile(
    rb"""<\?xml[^>]*?\bencoding\s*=\s*["']\s*([\w.:-]+)|<meta\b[^>]*?\bcharset\s*=\s*["']?\s*([\w.:-]+)""",
    re.IGNORECASE,
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The first character of a page in UTF-16 that has no mark.
_WIDE = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
_TAG = re.compile(rb"<(?:script|style)\b.*?</(?:script|style)|<[^>]*>", re.DOTALL | re.IGNORECASE)
_ANY_VALID = re.compile("[^\x00-\x7f\ufffd]")
_GUESSED_FROM = 1 << 16
# Below this share of bytes above 127 a text is in Latin letters, where guesses take è for č.
_OTHER_SCRIPT = 0.3


def decode(raw: bytes, declared: str | None = None) -> str:
    """The text of a page, without byte order mark; what cannot be decoded is U+FFFD. Never fails.

    The first that applies decides: a byte order mark; being valid UTF-8, whatever is declared, for text in
    another encoding practically never is (but ISO-2022-JP, known by its escapes); ``declared``, the
    ``charset`` of HTTP; ``<meta>`` or the XML declaration in the first 4,096 bytes; a guess of
    `charset_normalizer` where much of the text is not ASCII; windows-1252. Labels mean what the WHATWG
    Encoding Standard says (by ``iso-8859-1`` windows-1252); unknown ones count as none, and so does ``utf-8``
    where not one character other than ASCII is valid.
    """
    for mark, name in _MARKS:
        if raw.startswith(mark):
            return raw[len(mark) :].decode(name, "replace")
    if raw[:2] in _WIDE:
        return raw.decode(_WIDE[raw[:2]], "replace")
    utf8 = _utf8(raw)
    if utf8 is not None and not (utf8.isascii() and "\x1b" in utf8):
        return utf8
    for label, from_http in ((declared, True), (_head_label(raw), False)):
        text = _labelled(raw, label, from_http) if label else None
        if text is not None:
            return text
    return _guessed(raw) if utf8 is None else utf8


def _utf8(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _head_label(raw: bytes) -> str | None:
    match = _DECLARED.search(_COMMENT.sub(b"", raw[:_HEAD]))
    return (match[1] or match[2]).decode("ascii", "replace") if match else None


def _labelled(raw: bytes, label: str, from_http: bool) -> str | None:
    import webencodings

    known = webencodings.lookup(label.encode("ascii", "replace").decode())
    # A page whose ASCII declaration was read cannot be in UTF-16, which is what the standard says, too.
    if known is None or known.name == "replacement" or (known.name.startswith("utf-16") and not from_http):
        return None
    # GB 18030 holds all of GBK, and is what the standard has both labels mean.
    codec = codecs.lookup("gb18030") if known.name == "gbk" else known.codec_info
    text: str = codec.decode(raw, "replace")[0]
    return None if known.name == "utf-8" and not _ANY_VALID.search(text) else text


def _guessed(raw: bytes) -> str:
    import charset_normalizer

    text = _TAG.sub(b" ", raw[: 4 * _GUESSED_FROM])[:_GUESSED_FROM]
    above = len(text) - len(text.translate(None, bytes(range(128, 256))))
    if above > _OTHER_SCRIPT * len(text.translate(None, b" \t\r\n")):
        best = charset_normalizer.from_bytes(text).best()
        if best is not None:
            return raw.decode(best.encoding, "replace")
    return raw.decode("cp1252", "replace")
