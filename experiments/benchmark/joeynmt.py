"""JoeyNMT and `reprt train` as whole programs: the same text, vocabularies and time.

    python joeynmt.py --train TEXT/train --dev TEXT/dev --languages pt en

Files are named as JoeyNMT has it: `--train corpus` stands for corpus.pt and corpus.en.
First `reprt train joeynmt.toml` learns the vocabularies and takes so many steps. Then
JoeyNMT trains by `joeynmt.yaml` with these vocabularies, and is interrupted after the
same seconds of training. Batches have 64 random sentences in both. What JoeyNMT cannot
change: its output layer has no bias, and the hidden layer of its feed-forward networks
has dropout as well.
"""

import argparse
import csv
import math
import os
import re
import shlex
import signal
import statistics
import string
import subprocess
import sys
import time
from pathlib import Path

import pages
from driver import PASSIVE_WAITING, ROOT

from reprt.data.tokenizers.bpe import BPE
from reprt_lab.provenance import provenance

HERE = Path(__file__).parent
PYTHON = ROOT / ".bench" / "joeynmt" / "bin" / "python"
# What is read in JoeyNMT's logs.
RATE = r"Tokens per Sec: +(\d+)"
LAST_STEP = r"Interrupt at epoch \d+, step (\d+)"
PERPLEXITY = r"ppl: +([\d.]+)"


def train_reprt(options) -> dict:
    """Trains our model, and returns what its log says."""
    command = [
        sys.executable,
        "-m",
        "reprt_lab",
        "train",
        HERE / "joeynmt.toml",
    ]
    command += ["--out", options.out / "run"]
    command += ["--set", f"training.steps={options.steps}"]
    # Nothing is measured on the test split, but it must not be cut from the training's.
    splits = {"train": options.train, "dev": options.dev, "test": options.dev}
    for split, stem in splits.items():
        files = [f"{stem}.{language}" for language in options.languages]
        command += [f"--{split}", *files]
    subprocess.run(command, check=True)
    [log] = (options.out / "run").glob("**/log.csv")
    with log.open() as file:
        rows = list(csv.DictReader(file))
    seconds = sum(float(row["train_seconds"]) for row in rows)
    tokens = sum(float(row["train_tokens"]) for row in rows)
    return {
        "folder": log.parent,
        "seconds": seconds,
        "steps": options.steps,
        "tokens_per_second": tokens / seconds,
        "validation_loss": float(rows[-1]["val_loss_per_token"]),
    }


def configure(options, vocabularies: Path) -> Path:
    """Writes JoeyNMT's configuration, and the vocabularies as it reads them."""
    for side in ("source", "target"):
        model = BPE((vocabularies / f"{side}.spm").read_bytes())
        (options.out / f"{side}.txt").write_text("\n".join(model.vocabulary))
    source, target = options.languages
    template = string.Template((HERE / "joeynmt.yaml").read_text())
    path = options.out / "joeynmt.yaml"
    path.write_text(
        template.safe_substitute(
            out=options.out,
            train=options.train,
            dev=options.dev,
            source=source,
            target=target,
            vocabularies=vocabularies,
        )
    )
    return path


def train_joeynmt(configuration: Path, seconds: float) -> dict:
    """Trains JoeyNMT's model for so long, and returns what its logs say."""
    command = [PYTHON, "-I", "-m", "joeynmt"]
    logs = configuration.parent / "model"
    log = logs / "train.log"
    log.unlink(missing_ok=True)
    # A shell's background jobs would hand on that they ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [*command, "train", configuration, "--skip-test"],
        env=PASSIVE_WAITING | os.environ,
    )
    while not (log.exists() and "EPOCH 1" in log.read_text()):
        if process.poll() is not None:
            sys.exit(f"JoeyNMT has not begun to train; see {log}.")
        time.sleep(0.1)
    time.sleep(seconds)
    # JoeyNMT then keeps the model, as after the last step.
    process.send_signal(signal.SIGINT)
    process.wait()
    [steps] = re.findall(LAST_STEP, log.read_text())
    # Each rate is that of ten steps.
    rates = [int(rate) for rate in re.findall(RATE, log.read_text())]
    subprocess.run([*command, "test", configuration], check=True)
    [perplexity] = re.findall(PERPLEXITY, (logs / "test.log").read_text())
    return {
        "seconds": seconds,
        "steps": int(steps),
        "tokens_per_second": statistics.median(rates),
        "validation_loss": math.log(float(perplexity)),
    }


def versions() -> str:
    """Returns the versions of what JoeyNMT computes with."""
    packages = subprocess.check_output(
        [PYTHON, "-m", "pip", "freeze"], text=True
    )
    lines = re.findall(r"^(?:joeynmt|torch|numpy)==.*", packages, re.M)
    return ", ".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--train", required=True, help="what its files begin with"
    )
    parser.add_argument(
        "--dev", required=True, help="the same of the validation text"
    )
    parser.add_argument(
        "--languages", nargs=2, required=True, help="what they end in"
    )
    parser.add_argument(
        "--steps", type=int, default=600, help="of our training"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/joeynmt"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    reprt_result = train_reprt(options)
    configuration = configure(options, reprt_result.pop("folder"))
    joeynmt_result = train_joeynmt(configuration, reprt_result["seconds"])
    command = shlex.join(["python", "joeynmt.py", *sys.argv[1:]])
    facts = provenance().changed(command=command).as_table()
    text = Path(f"{options.train}.{options.languages[1]}").read_text()
    facts |= {
        "load": os.getloadavg()[0],
        "text": {"pairs": text.count("\n"), "words": len(text.split())},
    }
    results = {
        "provenance": facts,
        "versions": {"joeynmt": versions()},
        "programs": {
            "reprt train": reprt_result,
            "joeynmt train": joeynmt_result,
        },
    }
    pages.write(options.out, results)
    print(pages.markdown(results))
