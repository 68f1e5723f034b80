"""Freeze lme4's answers for the designs of designs.py (needs Rscript with lme4 and jsonlite).

python tests/oracles/make_fixtures.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from designs import DESIGNS, fingerprint, model_of, simulate  # noqa: E402


def main() -> None:
    """Fit every model of every design and write lme4.json."""
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        for design in DESIGNS:
            frame = simulate(design)
            path = Path(folder) / f"{design.name}.csv"
            frame.to_csv(path, index=False)
            for name in design.models:
                random, fixed = model_of(name)
                command = [
                    "Rscript",
                    str(HERE / "lme4_reference.R"),
                    str(path),
                    ",".join(":".join(term) for term in random),
                    fixed[0][0] if fixed else "none",
                ]
                reply = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                answers[f"{design.name}/{name}"] = {"data_sha256": fingerprint(frame), **json.loads(reply)}
    (HERE / "lme4.json").write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
