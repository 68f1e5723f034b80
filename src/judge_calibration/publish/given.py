"""The file that says which nodes' outputs a publication takes as they are."""

from __future__ import annotations

import json
from pathlib import Path

PUBLICATION = "publication.json"


def read_given(root: Path) -> list[str]:
    """Return the nodes that nobody but the publisher can repeat; none outside a publication."""
    path = root / PUBLICATION
    if not path.is_file():
        return []
    content = json.loads(path.read_text(encoding="utf-8"))
    return [str(name) for name in content.get("given", [])]
