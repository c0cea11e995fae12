"""The gallery: who looks ahead? Other packages' models, each in its environment.

    python run.py --out runs/gallery

Each environment of `requirements/` audits its modules' models, one after the other, and
adds a JSON line for each to a file. Started again, it goes on with those that have no
line; the models of `made_here.py` are audited all at once. Then it writes the page.
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


def audit_module(environment, module, file):
    """Returns the rows of one module's models, and audits those that have none."""
    rows = read_rows(file)
    if module != "made_here":
        names = [f"{row['package']} {row['name']}" for row in rows]
        with file.open("a") as lines:
            run_script(environment, ["worker.py", module, *names], lines)
    elif not rows:
        # This script starts over when it is interrupted.
        unfinished = file.with_name(f"{file.name}.unfinished")
        with unfinished.open("w") as lines:
            run_script(environment, ["made_here.py"], lines)
        unfinished.replace(file)
    return read_rows(file)


def run_script(environment, command, output):
    """Runs a script of this folder in an environment; what it prints is the output."""
    python = REPOSITORY / ".gallery" / environment / "bin" / "python"
    subprocess.run(
        [python, *command],
        cwd=HERE,
        env=os.environ | VARIABLES,
        stdout=output,
        check=True,
    )


def read_rows(file):
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
            rows = audit_module(environment, module, file)
            if module == "made_here":
                parts = rows
            else:
                models += rows
    options.page.write_text(page.markdown(models, parts))
