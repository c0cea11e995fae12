"""The gallery: who looks ahead? Other packages' models, each in its environment.

    python run.py --out runs/gallery

Each environment of `requirements/` audits its modules' models, one after the other, and
adds a JSON line for each to a file. Started again, it goes on with those that have no
line. Then it writes the page.
"""

import argparse
import json
import os
import subprocess
from pathlib import Path

import page

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
MODULES = {
    "pytorch": ("torch_models", "made_here", "transformers_models"),
    "transformers_5_17": ("transformers_four",),
    "keras": ("tutorial", "keras_models"),
    "keras_3_7": ("tutorial",),
}
VARIABLES = {
    "PYTHONPATH": str(REPOSITORY),
    # Small models gain nothing from threads, which wait by spinning.
    "OMP_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


def audited(environment, module, file):
    """The rows of one module's models, those that are missing audited now."""
    rows = rows_of(file)
    if module == "made_here":
        # It is made whole.
        if rows:
            return rows
        command = ["made_here.py"]
    else:
        names = [f"{row['package']} {row['name']}" for row in rows]
        command = ["worker.py", module, *names]
    python = REPOSITORY / ".gallery" / environment / "bin" / "python"
    with file.open("a") as lines:
        subprocess.run(
            [python, *command],
            cwd=HERE,
            env=os.environ | VARIABLES,
            stdout=lines,
            check=True,
        )
    return rows_of(file)


def rows_of(file):
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=Path("runs/gallery"))
    parser.add_argument(
        "--page", type=Path, default=REPOSITORY / "docs/who_looks_ahead.md"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    models = []
    for environment, modules in MODULES.items():
        for module in modules:
            file = options.out / f"{environment}-{module}.jsonl"
            rows = audited(environment, module, file)
            if module == "made_here":
                made = rows
            else:
                models += rows
    options.page.write_text(page.markdown(models, made))
