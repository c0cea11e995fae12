"""The benchmark of translation: our search and others, on the same sentences.

Ours is measured beside the way of TensorFlow's tutorial, which decodes the whole prefix
again at every step, one sentence at a time, and beside CTranslate2, an engine in C++.
All have the same weights: first it is shown that they give the same probabilities, and
that they find the same translations. Every peer is a process of its own, in its own
environment, and in each round all of them take turns; times are divided by ours of the
same round. RePE is there for information, with weights of its own.

    python decoding.py --out runs/decoding --text auto

Untrained models do not know when to end, so [END] is forbidden, and every translation
has `--tokens` tokens. With `--run reprt=FOLDER`, a run of `reprt train`, they end where
that model ends them. Run it on a machine that does nothing else.
"""

import argparse
import contextlib
import dataclasses
import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from decoding_peers.settings import ENVIRONMENTS, PEERS
from decoding_results import Results
from process import ROOT, Process, WorkerFailed, on_jax, provenance
from text import END, START, generate, load

OURS = "reprt"
BASELINES = (
    "reprt",
    "reprt:jax",
    "tutorial",
    "ctranslate2",
    "ctranslate2:parallel",
    "ctranslate2:mkl",
    "ctranslate2:parallel-mkl",
)
INFORMATION = ("reprt:repe-causal", "reprt:repe-causal-jax", "reprt:repe")
GROWING = (OURS, *INFORMATION)
PAD = 0
# How far the log-probability of a given token may be from ours.
SCORES = 1e-4
SCORED = 64  # sentences
FORCED, MOST = 30, 128  # tokens, without and with a run


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", nargs="+", default=[*BASELINES, *INFORMATION])
    parser.add_argument("--beam-sizes", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--text", help="as `reprt train --text`; else generated ids")
    parser.add_argument("--pair", default="pt_to_en", help="of the text")
    parser.add_argument("--sentences", type=int, default=1803, help="at most")
    parser.add_argument(
        "--sample",
        action="append",
        default=["tutorial=12", "reprt:repe=256"],
        metavar="PEER=COUNT",
        help="sentences that a slow peer is measured on",
    )
    parser.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="PEER=FOLDER",
        help="trained model of `reprt`, the baseline, and of its variants",
    )
    parser.add_argument("--tokens", type=int, help="of a translation")
    parser.add_argument(
        "--growth", nargs="*", type=int, default=[64, 128, 256, 512], help="tokens"
    )
    parser.add_argument("--growth-sentences", type=int, default=4)
    parser.add_argument("--growth-rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="PEER=PATH",
        help="interpreter of a peer; else .bench/PEER/bin/python",
    )
    parser.add_argument("--out", type=Path, default=Path("runs/decoding"))
    options = parser.parse_args()
    if unknown := {peer.partition(":")[0] for peer in options.peers} - set(PEERS):
        parser.error(f"no such peers: {', '.join(sorted(unknown))}")
    if OURS not in options.peers:
        parser.error(f"the others are divided by {OURS}, which must be among the peers")
    for name in ("sample", "run", "python"):
        pairs = (each.split("=", 1) for each in getattr(options, name))
        setattr(options, name, dict(pairs))
    return options


class Benchmark:
    """The whole of it, for the command's arguments."""

    def __init__(self, options):
        self.options = options
        self.tokens = options.tokens or (MOST if options.run else FORCED)
        options.out.mkdir(parents=True, exist_ok=True)
        self.text = self._text()
        text = load(self.text)
        self.lengths = [len(ids) for ids in text.pairs.source]
        self.peers = [peer for peer in options.peers if self._has_weights(peer)]
        self.weights = options.out / "weights.npz"
        found = provenance()
        found |= {
            "seed": options.seed,
            "text": text.describe(),
            "threads": options.threads,
            "growth_sentences": options.growth_sentences,
        }
        self.results = Results(options.out, OURS, self._work(text), found)

    def run(self):
        if self.options.rounds:
            self._measure()
        if self.options.growth:
            self._grow()
        self.results.write()
        print(self.results.markdown())

    def _measure(self):
        """All peers by turns, once they have shown that they are the same."""
        with contextlib.ExitStack() as stack:
            workers = {}
            # Ours comes first, since the others are given its weights. They start one
            # after the other, so that nothing else runs while that is timed.
            for peer in sorted(self.peers, key=lambda peer: peer != OURS):
                _say(f"{peer}: start")
                workers[peer] = stack.enter_context(self._process(peer))
                self._start(peer, workers[peer])
            self._show_agreement(workers)
            for peer, worker in workers.items():
                _say(f"{peer}: warming up")
                for beam_size in self._beam_sizes(peer):
                    # Batches of several shapes, for the sake of our graphs; JAX is
                    # compiled for each.
                    few = 2 * self.options.batch_size + 1
                    count = sys.maxsize if on_jax(peer) else few
                    chosen = self._sample(min(count, self._count(peer)))
                    self._translate(worker, chosen, beam_size)
            for number in range(self.options.rounds):
                _say(f"round {number + 1} of {self.options.rounds}")
                self._round(number, workers)
            for peer, worker in workers.items():
                self.results.note(peer, memory=worker.ask("memory"))
        self.weights.unlink()

    def _start(self, peer, worker):
        hello = worker.ask("hello")
        built = self._build(worker, peer, never_ends=not self.options.run)
        if peer == OURS:
            worker.ask("save", path=str(self.weights))
        first = self._translate(worker, self._sample(1), 1)
        self.results.note(
            peer,
            versions=hello["versions"],
            **{"import": hello["import"], "first": first["seconds"], **built},
        )

    def _show_agreement(self, workers):
        sentences = self._sample(SCORED)
        wanted = workers[OURS].ask("scores", sentences=sentences)
        others = [peer for peer in workers if peer in BASELINES and peer != OURS]
        for peer in others:
            scores = workers[peer].ask("scores", sentences=sentences)
            difference = max(
                # What is forbidden has no score to compare.
                np.max(np.abs(np.subtract(found, right))[np.array(right) > -1e6])
                for found, right in zip(scores, wanted, strict=True)
            )
            self.results.note(peer, agreement={"scores": float(difference), "same": {}})
            if difference > SCORES:
                self.results.write()
                sys.exit(f"{peer} is not the same model: {difference} from ours.")

    def _round(self, number, workers):
        """All translate; every other round in the opposite order."""
        for beam_size in self.options.beam_sizes:
            peers = [peer for peer in self.peers if beam_size in self._beam_sizes(peer)]
            translations = {}
            for peer in reversed(peers) if number % 2 else peers:
                _say(f"  {peer}, {beam_size} beams")
                chosen = self._sample(self._count(peer))
                found = self._translate(workers[peer], chosen, beam_size)
                translations[peer] = dict(zip(chosen, found["translations"]))
                tokens = sum(map(len, found["translations"]))
                self.results.add(
                    beam_size, peer, found["seconds"], tokens, sentences=len(chosen)
                )
            self._compare(beam_size, translations, workers[OURS])
        self.results.write()

    def _compare(self, beam_size, translations, ours):
        """Counts the translations that are the same as ours."""
        name = "greedy" if beam_size == 1 else f"{beam_size} beams"
        for peer, found in translations.items():
            if "agreement" not in self.results.peers[peer]:
                continue
            pairs = {
                number: (translations[OURS][number], ids)
                for number, ids in found.items()
                if translations[OURS][number] != ids
            }
            same = f"{len(found) - len(pairs):,} of {len(found):,}"
            if pairs and beam_size == 1:
                # Two words may be as likely but for rounding.
                same += f"; words apart by {self._margin(pairs, ours):.1e}"
            self.results.peers[peer]["agreement"]["same"][name] = same

    def _margin(self, pairs, ours):
        """Where two translations part, how far the two words are apart, at most."""
        sentences, (first, second) = list(pairs), zip(*pairs.values())
        one, other = (
            ours.ask("scores", sentences=sentences, targets=targets)
            for targets in (first, second)
        )
        apart = []
        for pair, *scores in zip(zip(first, second), one, other):
            # The end of one may be where they part.
            length = min(map(len, pair))
            same = [a == b for a, b in zip(*pair)] + [False]
            place = min(same.index(False), length)
            apart.append(abs(scores[0][place] - scores[1][place]))
        return max(apart)

    def _grow(self):
        """Times ever longer translations of a few sentences, by our models alone."""
        with contextlib.ExitStack() as stack:
            workers = {}
            for peer in [peer for peer in GROWING if peer in self.peers]:
                workers[peer] = stack.enter_context(self._process(peer))
                self._build(workers[peer], peer, never_ends=True, trained=False)
            chosen = self._sample(self.options.growth_sentences)
            # The first time makes the graphs.
            for number, tokens, (peer, worker) in itertools.product(
                range(1 + self.options.growth_rounds),
                self.options.growth,
                workers.items(),
            ):
                _say(f"{peer}: {tokens} tokens")
                seconds = self._translate(worker, chosen, 1, tokens)["seconds"]
                if number:
                    self.results.add_growth(peer, tokens, seconds)
                    self.results.write()

    def _build(self, worker, peer, never_ends, trained=True):
        given = {}
        if trained and peer in self.options.run:
            given["run"] = self.options.run[peer]
        if peer in BASELINES and peer != OURS:
            given["weights"] = str(self.weights)
        return worker.ask(
            "build",
            # Ours never takes the first two of itself; so others must not either.
            forbidden=[PAD, START, *([END] if never_ends else [])],
            batch_size=self.options.batch_size,
            threads=self.options.threads,
            seed=self.options.seed,
            **given,
        )

    def _translate(self, worker, sentences, beam_size, tokens=None):
        return worker.ask(
            "translate",
            sentences=sentences,
            beam_size=beam_size,
            max_tokens=tokens or self.tokens,
        )

    def _sample(self, count):
        """Returns the numbers of so many sentences, of all lengths alike."""
        if count >= len(self.lengths):
            return list(range(len(self.lengths)))
        order = np.argsort(self.lengths, kind="stable")
        places = (np.arange(count) + 0.5) * len(order) / count
        return order[places.astype(int)].tolist()

    def _count(self, peer):
        return min(len(self.lengths), int(self.options.sample.get(peer, sys.maxsize)))

    def _beam_sizes(self, peer):
        possible = PEERS[peer.partition(":")[0]] or self.options.beam_sizes
        return [size for size in self.options.beam_sizes if size in possible]

    def _has_weights(self, peer):
        """Whether a peer's translations would be like the others'."""
        trained = self.options.run
        return not trained or peer in trained or peer in BASELINES

    def _work(self, text):
        options = self.options
        length = f"{self.tokens} tokens each: untrained, with [END] forbidden"
        if options.run:
            length = f"each until its own end, or {self.tokens} tokens"
        return (
            f"{len(self.lengths):,} sentences of {text.name}, vocabularies of "
            f"{text.vocab_sizes[0]:,} and {text.vocab_sizes[1]:,}. Translated to "
            f"{length}. Batches of {options.batch_size} sentences of like length, "
            f"float32, {options.threads} threads. Where fewer sentences were timed, "
            "they are spread evenly over all lengths, and the last column is what all "
            "would take."
        )

    def _process(self, peer):
        log = self.options.out / f"{peer.replace(':', '-')}.log"
        return Process(
            "decoding_worker.py", self._python(peer), peer, self.text, log
        )

    def _python(self, peer):
        name = peer.partition(":")[0]
        environment = ENVIRONMENTS.get(name, name)
        default = ROOT / ".bench" / environment / "bin" / "python"
        return Path(self.options.python.get(name, default))

    def _text(self):
        options = self.options
        path = options.out / "text.npz"
        if options.text:
            script = Path(__file__).with_name("corpus.py")
            command = [self._python(OURS), script]
            command += [options.text, options.pair, "test", path]
            if OURS in options.run:
                command += ["--run", options.run[OURS]]
            subprocess.run(command, check=True)
        else:
            generate(options.sentences, options.seed).save(path)
        text = load(path)
        if len(text.pairs) > options.sentences:
            first = dataclasses.replace(text, pairs=text.pairs.first(options.sentences))
            first.save(path)
        return path


def _say(what):
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        Benchmark(arguments()).run()
    except WorkerFailed as error:
        sys.exit(str(error))
