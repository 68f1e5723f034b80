"""Say whether the installed torch fits this machine: stop where it is a CUDA build without an accelerator.

Run before the packages that torch needs are there, so torch itself is not imported: its file `version.py`
says how it was built.
"""

import runpy
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

found = find_spec("torch")
if found is None or found.origin is None:
    sys.exit("torch was not installed.\n  Next: rm -r .venv-sft && make env-sft")
built = runpy.run_path(str(Path(found.origin).with_name("version.py")))
if built["cuda"] and not shutil.which("nvidia-smi"):
    sys.exit(
        f"torch {built['__version__']} is a CUDA build of several GB, and there is no accelerator here.\n"
        "  Next: bring torch's CPU build into .venv-sft (its web site has the command for each platform; add "
        "--no-deps torch==2.13.0), then run make env-sft again"
    )
print(f"torch {built['__version__']}, {'CUDA ' + built['cuda'] if built['cuda'] else 'for the CPU'}")
