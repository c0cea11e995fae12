"""JoeyNMT and `reprt train` as whole programs: the same text, vocabularies and time.

    python joeynmt.py --train TEXT/train --dev TEXT/dev --languages pt en

Files are named as JoeyNMT has it: `--train corpus` stands for corpus.pt and corpus.en.
First `reprt train` learns the vocabularies and takes so many steps. JoeyNMT then gets
its vocabularies and is interrupted after the same seconds of training. Batches have 64
random sentences in both, and the models differ only in what JoeyNMT cannot change: its
heads are as wide as the states divided by their number, which ours take over, its output
layer has no bias, and the hidden layer of its feed-forward networks has dropout as well.
"""

import argparse
import csv
import json
import math
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pages
from driver import ROOT

from reprt.constants import END, PAD, START, UNKNOWN
from reprt.data.tokenizers.bpe import BPE
from reprt_lab.provenance import provenance

RECIPE = """
[vocabulary]
name = "bpe"

[optimizer]
epsilon = 1e-8

[training]
bleu = false

[models.baseline]
preset = "baseline"
key_dim = 16
value_dim = 16
layer_norm_epsilon = 1e-6
dropout_places = ["embeddings", "attention_weights", "attention_output", "feed_forward_output"]
"""
JOEYNMT = ROOT / ".bench" / "joeynmt" / "bin" / "python"
RATES, ENDED = r"Tokens per Sec: +(\d+)", r"Interrupt at epoch \d+, step (\d+)"
STARTUP_SECONDS = 600


def train_ours(options, out: Path) -> dict:
    """Trains our model, and returns what its log says."""
    out.mkdir(parents=True, exist_ok=True)
    recipe = out / "baseline.toml"
    recipe.write_text(RECIPE)
    splits = {"train": options.train, "dev": options.dev, "test": options.dev}
    command = [sys.executable, "-m", "reprt_lab", "train", recipe]
    for split, stem in splits.items():
        files = [f"{stem}.{language}" for language in options.languages]
        command += [f"--{split}", *files]
    steps = f"training.steps={options.steps}"
    subprocess.run([*command, "--set", steps, "--out", out / "run"], check=True)
    [log] = (out / "run").glob("**/log.csv")
    rows = list(csv.DictReader(log.open()))
    seconds = sum(float(row["train_seconds"]) for row in rows)
    tokens = sum(float(row["train_tokens"]) for row in rows)
    return {
        "folder": log.parent,
        "seconds": seconds,
        "steps": options.steps,
        "tokens_per_second": tokens / seconds,
        "validation_loss": float(rows[-1]["val_loss_per_token"]),
    }


def configure(options, out: Path, vocabularies: Path) -> Path:
    """Writes JoeyNMT's configuration, and the vocabularies as it reads them."""
    sides = {}
    for side, language in zip(("source", "target"), options.languages):
        model = vocabularies / f"{side}.spm"
        pieces = out / f"{side}.txt"
        pieces.write_text("\n".join(BPE(model.read_bytes()).vocabulary))
        sides[side] = {
            "lang": language,
            "level": "bpe",
            "max_length": 128,
            "voc_file": str(pieces),
            "tokenizer_type": "sentencepiece",
            "tokenizer_cfg": {"model_file": str(model)},
        }
    stack = {
        "type": "transformer",
        "num_layers": 4,
        "num_heads": 8,
        "embeddings": {"embedding_dim": 128, "scale": True},
        "hidden_size": 128,
        "ff_size": 512,
        "dropout": 0.1,
        "layer_norm": "post",
    }
    symbols = {
        "unk_token": UNKNOWN,
        "pad_token": PAD,
        "bos_token": START,
        "eos_token": END,
    }
    configuration = {
        "name": "baseline",
        "model_dir": str(out / "model"),
        "use_cuda": False,
        "data": {
            "train": options.train,
            "dev": options.dev,
            "dataset_type": "plain",
            "src": sides["source"],
            "trg": sides["target"],
            "special_symbols": symbols,
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "uniform",
            "embed_init_weight": 0.05,
            "encoder": stack,
            "decoder": stack,
        },
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "scheduling": "noam",
            "learning_rate_factor": 1,
            "learning_rate_warmup": 4000,
            "learning_rate_min": 0,
            "normalization": "tokens",
            "batch_type": "sentence",
            "batch_size": 64,
            "epochs": 1000,
            "logging_freq": 10,
            "validation_freq": 10**9,
            "overwrite": True,
        },
        # Scoring the references fails without attention's weights (2.3.0).
        "testing": {"return_prob": "ref", "return_attention": True},
    }
    path = out / "joeynmt.yaml"
    # YAML reads JSON.
    path.write_text(json.dumps(configuration, indent=1))
    return path


def train_theirs(configuration: Path, seconds: float) -> dict:
    """Trains JoeyNMT's model for so long, and returns what its logs say."""
    command = [JOEYNMT, "-m", "joeynmt"]
    logs = configuration.parent / "model"
    process = subprocess.Popen(
        [*command, "train", configuration, "--skip-test"]
    )
    begun = time.monotonic()
    log = logs / "train.log"
    while not (log.exists() and "EPOCH 1" in log.read_text()):
        if (
            process.poll() is not None
            or time.monotonic() > begun + STARTUP_SECONDS
        ):
            sys.exit(f"JoeyNMT has not begun to train; see {log}.")
        time.sleep(0.1)
    time.sleep(seconds)
    # It then keeps the model, as after the last step.
    process.send_signal(signal.SIGINT)
    process.wait()
    [steps] = re.findall(ENDED, log.read_text())
    # Those of ten steps each.
    rates = [int(rate) for rate in re.findall(RATES, log.read_text())]
    subprocess.run([*command, "test", configuration], check=True)
    [perplexity] = re.findall(
        r"ppl: +([\d.]+)", (logs / "test.log").read_text()
    )
    return {
        "seconds": seconds,
        "steps": int(steps),
        "tokens_per_second": statistics.median(rates),
        "validation_loss": math.log(float(perplexity)),
    }


def versions() -> str:
    """Returns the versions of what JoeyNMT computes with."""
    code = (
        "import importlib.metadata as m; "
        "print(*[f'{n} {m.version(n)}' for n in ('joeynmt', 'torch', 'numpy')], sep=', ')"
    )
    return subprocess.check_output([JOEYNMT, "-c", code], text=True).strip()


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
    ours = train_ours(options, options.out)
    configuration = configure(options, options.out, ours.pop("folder"))
    theirs = train_theirs(configuration, ours["seconds"])
    command = shlex.join(["python", "joeynmt.py", *sys.argv[1:]])
    facts = provenance().changed(command=command).as_table()
    text = Path(f"{options.train}.{options.languages[1]}").read_text()
    facts |= {
        "load": os.getloadavg()[0],
        "text": {"pairs": text.count("\n"), "words": len(text.split())},
    }
    found = {
        "provenance": facts,
        "versions": {"joeynmt": versions()},
        "programs": {"reprt train": ours, "joeynmt train": theirs},
    }
    pages.write(options.out, found)
    print(pages.markdown(found))
