"""The benchmark of translation: our search and others, on the same sentences.

The baselines have the same weights: first it is shown that they give the same
probabilities, then how many translations are the same. In each round all peers take
turns. RePE is there for information, with weights of its own. Untrained models do not
know when to end, so [END] is forbidden, and every translation has as many tokens.
"""

import contextlib
import itertools
import os
import sys

import numpy as np
from driver import Benchmark, on_jax
from peers.settings import OURS
from text import Text, generate

BASELINES = (
    *("reprt", "reprt:jax", "reprt:xla", "tutorial", "ctranslate2"),
    *("ctranslate2:parallel", "ctranslate2:mkl", "ctranslate2:parallel-mkl"),
)
INFORMATION = (
    *("reprt:repe-causal", "reprt:repe-causal-jax", "reprt:repe-causal-xla"),
    "reprt:repe",
)
SEARCHES = {"greedy": 1, "4 beams": 4}
PAIR, MAX_TOKENS = "pt_to_en", 128  # of the text
TOKENS, AT_ONCE = 30, 4  # of a translation; sentences that grow
# How far the log-probability of a given token may be from ours, and of how many.
SCORES, SCORED = 1e-4, 64


class Translating(Benchmark):
    """Translates, for the command's options."""

    everyone = (*BASELINES, *INFORMATION)
    modules = {OURS: "reprt_search", "tutorial": "plain_keras"}
    out = "runs/decoding"

    @classmethod
    def add_arguments(cls, add):
        samples, lengths = (
            ["tutorial=12", "reprt:repe=256"],
            [64, 128, 256, 512],
        )
        add("--batch-size", type=int, default=64)
        add("--text", help="as `reprt train --text`; else generated ids")
        add("--sentences", type=int, default=1803, help="at most")
        add("--sample", action="append", default=samples, help="PEER=SENTENCES")
        add("--growth", nargs="*", type=int, default=lengths, help="tokens")
        add("--growth-rounds", type=int, default=3)

    def __init__(self, options):
        text = _text(options)
        facts = {"threads": os.cpu_count(), "growth_sentences": AT_ONCE}
        super().__init__(options, text, **facts)
        self.lengths = [len(ids) for ids in text.source]
        self.samples = dict(sample.split("=") for sample in options.sample)
        source, target = text.vocab_sizes
        self.found["work"] = (
            f"{len(text):,} sentences of {text.name}, vocabularies of {source:,} and "
            f"{target:,}. Translated to {TOKENS} tokens each: untrained, with [END] "
            f"forbidden. Batches of {options.batch_size} sentences of like length, "
            f"float32, {os.cpu_count()} threads. Where fewer sentences were timed, "
            "they are spread evenly over all lengths, and the last column is what all "
            "would take."
        )
        self.found |= {
            "searches": {},
            "agreement": {},
            "growth": {},
            "start": {},
        }

    def run(self):
        """All peers by turns, once they have shown that they are the same."""
        options, workers = self.options, {}
        with contextlib.ExitStack() as stack:
            # They start one after the other, so that nothing else runs meanwhile.
            for peer in self.peers:
                workers[peer] = stack.enter_context(self.worker(peer))
                self._start(peer, workers[peer])
            os.remove(self.weights)
            self._show_agreement(workers)
            for peer, worker in workers.items():
                # Batches of several shapes, for our graphs; XLA compiles each.
                count, few = self._count(peer), 2 * options.batch_size + 1
                by_xla = on_jax(peer) or peer.endswith("xla")
                chosen = self._sample(count if by_xla else min(count, few))
                for search in self._searches(peer):
                    self._translate(worker, chosen, SEARCHES[search])
            for number in range(options.rounds):
                self._round(number, workers)
            for peer, worker in workers.items():
                self.found["start"][peer]["memory"] = worker.ask("memory")
            if options.growth:
                ours = [p for p in self.peers if p in (OURS, *INFORMATION)]
                self._grow({peer: workers[peer] for peer in ours})
        self.write()

    def _start(self, peer, worker):
        size, others = self.options.batch_size, {*BASELINES} - {OURS}
        given = {"weights": self.weights} if peer in others else {}
        built = self.build(worker, batch_size=size, **given)
        if peer == OURS:
            worker.ask("save", path=self.weights)
        first = self._translate(worker, self._sample(1), 1)["seconds"]
        self.found["start"][peer] = built | {"first": first}

    def _show_agreement(self, workers):
        sentences = self._sample(SCORED)
        wanted = np.concatenate(
            workers[OURS].ask("scores", sentences=sentences)
        )
        possible = wanted > -1e6  # what is forbidden has no score to compare
        for peer in [peer for peer in self.peers[1:] if peer in BASELINES]:
            found = np.concatenate(
                workers[peer].ask("scores", sentences=sentences)
            )
            difference = float(np.max(np.abs(found - wanted)[possible]))
            self.found["agreement"][peer] = {"scores": difference, "same": {}}
            if difference > SCORES:
                sys.exit(
                    f"{peer} is not the same model: {difference} from ours."
                )

    def _round(self, number, workers):
        """All translate; every other round in the opposite order."""
        for search, beam_size in SEARCHES.items():
            rows, translations = (
                self.found["searches"].setdefault(search, {}),
                {},
            )
            peers = [
                peer for peer in self.peers if search in self._searches(peer)
            ]
            for peer in peers:
                row = {
                    "sentences": self._count(peer),
                    "seconds": [],
                    "tokens": [],
                }
                rows.setdefault(peer, row)
            for peer in reversed(peers) if number % 2 else peers:
                chosen = self._sample(self._count(peer))
                found = self._translate(workers[peer], chosen, beam_size)
                translations[peer] = dict(zip(chosen, found["translations"]))
                rows[peer]["seconds"].append(found["seconds"])
                rows[peer]["tokens"].append(
                    sum(map(len, found["translations"]))
                )
            ours = translations[OURS]
            for peer in set(peers) & set(self.found["agreement"]):
                found = {
                    n: ids for n, ids in translations[peer].items() if n in ours
                }
                same = sum(ours[index] == ids for index, ids in found.items())
                counts = f"{same:,} of {len(found):,}"
                self.found["agreement"][peer]["same"][search] = counts

    def _grow(self, workers):
        """Times ever longer translations of a few sentences, by our models only."""
        rows, lengths = self.found["growth"], self.options.growth
        rows |= {peer: {tokens: [] for tokens in lengths} for peer in workers}
        # The first time makes the graphs.
        for number in range(1 + self.options.growth_rounds):
            for tokens, (peer, worker) in itertools.product(
                lengths, workers.items()
            ):
                found = self._translate(
                    worker, self._sample(AT_ONCE), 1, tokens
                )
                rows[peer][tokens] += [found["seconds"]] if number else []

    def _translate(self, worker, sentences, beam_size, tokens=TOKENS):
        sizes = {"beam_size": beam_size, "max_tokens": tokens}
        return worker.ask("translate", sentences=sentences, **sizes)

    def _sample(self, count):
        """Returns the numbers of `count` sentences, spread evenly over all lengths."""
        if count >= len(self.lengths):
            return list(range(len(self.lengths)))
        order = np.argsort(self.lengths, kind="stable")
        places = (np.arange(count) + 0.5) * len(order) / count
        return order[places.astype(int)].tolist()

    def _searches(self, peer):
        return ["greedy"] if peer == "tutorial" else [*SEARCHES]

    def _count(self, peer):
        return min(
            len(self.lengths), int(self.samples.get(peer, len(self.lengths)))
        )


def _text(options):
    """The test split of a corpus, in vocabularies of its own, or generated ids."""
    if not options.text:
        return generate(options.sentences)
    from reprt.data import cache, encode, find
    from reprt.data.tokenizers.wordpiece import WordPieceSettings

    corpus = find(options.text, PAIR)
    text = encode(corpus, WordPieceSettings(), MAX_TOKENS, cache())
    sizes = len(text.source_tokenizer), len(text.target_tokenizer)
    sides = text.test.source, text.test.target
    return Text(f"{corpus.name}, test", sizes, *sides).first(options.sentences)
