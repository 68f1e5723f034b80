"""Say whether the installed torch fits this machine: stop where it is a CUDA build without an accelerator."""

import sys

try:
    import torch
except Exception as problem:  # a broken build fails in many ways, and each is told
    sys.exit(f"torch cannot be imported: {problem}\n  Next: rm -r .venv-sft && make env-sft")

if torch.version.cuda and not torch.cuda.is_available():
    sys.exit(
        f"torch {torch.__version__} is a CUDA build of several GB, and there is no accelerator here.\n"
        "  Next: bring torch's CPU build into .venv-sft (its web site has the command for each platform; add "
        "--no-deps torch==2.13.0), then run make env-sft again"
    )
place = torch.cuda.get_device_name() if torch.cuda.is_available() else "the CPU"
print(f"torch {torch.__version__} trains on {place}")
