"""XML replies: strictly one element; else one in a single fenced block; else a single one in the text.

Read with defusedxml: document types, entities and external references are refused, so no reply can make the
parser expand anything.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, ParseError

from judge_calibration.judges.parsing.fields import Fields, Unreadable, read_fields
from judge_calibration.judges.parsing.reasoning import without_reasoning
from judge_calibration.judges.parsing.replies import (
    LONGEST_REPLY,
    Parsed,
    ParsePath,
    malformed,
    outer_stripped,
    truncated,
)

ROOT = "judgment"
_FENCED = re.compile(
    r"\A[^`]*?^[ \t]*```[ \t]*(?:xml)?[ \t]*\n(?P<body>[^`]*?)\n[ \t]*```[ \t]*$[^`]*\Z", re.MULTILINE | re.I
)


class _ForbiddenError(ValueError):
    """The reply declares a document type, an entity or an external reference."""


def read_xml(text: str, fields: Fields, root: str = ROOT) -> Parsed:
    """Read a reply that has to be one XML element with one child a field.

    Examples
    --------
    >>> from judge_calibration.judges.parsing.alphabet import Alphabet
    >>> from judge_calibration.judges.parsing.fields import LabelField
    >>> fields = (LabelField("winner", Alphabet()),)
    >>> read_xml("<judgment><winner>B</winner></judgment>", fields).values["winner"]
    <Meaning.SECOND: 'second'>
    >>> read_xml('<!DOCTYPE j [<!ENTITY x "A">]><judgment><winner>&x;</winner></judgment>', fields).reason
    'forbidden_markup'
    """
    found = _find_element(text, root)
    if isinstance(found, Parsed):
        return found
    element, path, source = found
    raw = _children(element)
    if isinstance(raw, Parsed):
        return raw
    try:
        values, flags = read_fields(fields, raw)
    except Unreadable as problem:
        return malformed(str(problem))
    return Parsed("valid", values, path, flags=flags, found=source)


def _find_element(text: str, root: str) -> tuple[Element, ParsePath, str | None] | Parsed:
    try:
        strict = _as_element(outer_stripped(text), root)
        if strict is not None:
            return strict, "strict", None
        if len(text) > LONGEST_REPLY:
            return malformed("too_long")
        rest = without_reasoning(text)
        if rest is None:
            return truncated("unclosed_reasoning")
        rest = outer_stripped(rest)
        if not rest:
            return Parsed("empty", reason="only_reasoning")
        strict = _as_element(rest, root)
        if strict is not None:
            return strict, "strict", None
        # A document type hides in no other place than before the element.
        if re.search(r"<!(?:DOCTYPE|ENTITY)", rest, re.IGNORECASE):
            return malformed("forbidden_markup")
        opened = [match.start() for match in re.finditer(rf"<{root}(?=[\s/>])", rest)]
        closed = [match.end() for match in re.finditer(rf"</{root}\s*>", rest)]
        if not opened:
            return malformed("no_element")
        if len(opened) > 1 or len(closed) > 1:
            return malformed("two_elements")
        if not closed or closed[0] < opened[0]:
            return malformed("broken_element")
        source = rest[opened[0] : closed[0]]
        element = _as_element(source, root)
        if element is None:
            return malformed("broken_element")
        fenced = _FENCED.match(rest) if rest.count("```") == 2 else None
        alone = fenced is not None and fenced["body"].strip() == source
        return element, "fenced" if alone else "embedded", source
    except _ForbiddenError:
        return malformed("forbidden_markup")


def _as_element(text: str, root: str) -> Element | None:
    """Return the element that the text strictly is, else None."""
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    if not text.startswith("<"):
        return None
    try:
        element: Element = fromstring(text, forbid_dtd=True, forbid_entities=True, forbid_external=True)
    except DefusedXmlException as problem:
        raise _ForbiddenError(type(problem).__name__) from None
    except (ParseError, ValueError, LookupError):
        # LookupError: a declared encoding that does not exist. ValueError: text that UTF-8 cannot hold.
        return None
    return element if element.tag == root else None


def _children(element: Element) -> dict[str, str] | Parsed:
    """Return each child's text; a child that has children of its own holds no label."""
    raw: dict[str, str] = {}
    for child in element:
        name = str(child.tag)
        value = "" if len(child) else (child.text or "")
        if name in raw and raw[name].strip() != value.strip():
            return malformed("conflicting_keys")
        raw[name] = value
    return raw
