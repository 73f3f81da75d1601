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
_TAG = re.compile(rb"<(?:script|style)\b.*?</(?:script|style)|<[^>]*>", re.DOTALL | re.IGNORECASE)
_GUESSED_FROM = 1 << 16
# Below this share of bytes above 127 a text is in Latin letters, where guesses take è for č.
_OTHER_SCRIPT = 0.3


def decode(raw: bytes, declared: str | None = None) -> str:
    """The text of a page, without byte order mark; what cannot be decoded is U+FFFD. Never fails.

    The first that applies decides: a byte order mark; being valid UTF-8 with other than ASCII characters, which
    text in another encoding practically never is, whatever it declares; ``declared``, the ``charset`` of HTTP;
    ``<meta>`` or the XML declaration in the first 4,096 bytes; a guess (`charset_normalizer`) where much of the
    text is not ASCII; windows-1252. Labels mean what the WHATWG Encoding Standard says (``iso-8859-1`` is
    windows-1252); unknown ones, and UTF-8 where no character is valid, count as not declared.
    """
    for mark, name in _MARKS:
        if raw.startswith(mark):
            return raw[len(mark) :].decode(name, "replace")
    utf8 = _utf8(raw)
    if utf8 is not None and not utf8.isascii():
        return utf8
    head = _head_label(raw)
    for label, from_http in ((declared, True), (head, False)):
        text = _labelled(raw, label, from_http) if label else None
        if text is not None:
            return text
    return utf8 if utf8 is not None else _guessed(raw)


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

    known = webencodings.lookup(label)
    # A page whose ASCII declaration was read cannot be in UTF-16, which is what the standard says, too.
    if known is None or known.name == "replacement" or (known.name.startswith("utf-16") and not from_http):
        return None
    name = "gb18030" if known.name == "gbk" else known.codec_info.name
    text: str = known.codec_info.decode(raw, "replace")[0] if name != "gb18030" else raw.decode(name, "replace")
    if known.name == "utf-8" and all(character == "\ufffd" or character.isascii() for character in text):
        return None
    return text


def _guessed(raw: bytes) -> str:
    import charset_normalizer

    text = _TAG.sub(b" ", raw[: 4 * _GUESSED_FROM])[:_GUESSED_FROM]
    above = len(text) - len(text.translate(None, bytes(range(128, 256))))
    if above > _OTHER_SCRIPT * len(text.translate(None, b" \t\r\n")):
        best = charset_normalizer.from_bytes(text).best()
        if best is not None:
            return raw.decode(best.encoding, "replace")
    return raw.decode("cp1252", "replace")
