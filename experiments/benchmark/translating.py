"""The benchmark of translation: our search and others, on the same sentences.

The baselines have the same weights: first it is shown that they give the same
probabilities, then how many translations are the same. In each round all peers take
turns. RePE is there for information, with weights of its own. Untrained models do not
know when to end, so [END] is forbidden, and every translation has as many tokens.
"""

import contextlib
import os
import sys

import numpy as np
from driver import Benchmark, on_jax
from peers.settings import OURS
from text import Text, generate

BASELINES = (
    "reprt",
    "reprt:jax",
    "reprt:xla",
    "tutorial",
    "ctranslate2",
    "ctranslate2:parallel",
    "ctranslate2:mkl",
    "ctranslate2:parallel-mkl",
)
INFORMATION = (
    "reprt:repe-causal",
    "reprt:repe-causal-jax",
    "reprt:repe-causal-xla",
    "reprt:repe",
)
# The beams of each search.
SEARCHES = {"greedy": 1, "4 beams": 4}
# The pair of the text, and how many tokens its sentences have at most.
PAIR, MAX_TOKENS = "pt_to_en", 128
# How many tokens a translation has.
TOKENS = 30
# How many sentences are translated at once to ever longer translations.
GROWTH_SENTENCES = 4
# How far the log-probability of a given token may be from ours.
SCORE_DIFFERENCE = 1e-4
# In how many sentences the log-probabilities are compared.
SCORED_SENTENCES = 64
# A log-probability below this is that of a token that is forbidden.
FORBIDDEN = -1e6


class Translating(Benchmark):
    """Translates, for the command's options."""

    all_peers = (*BASELINES, *INFORMATION)
    modules = {OURS: "reprt_search", "tutorial": "plain_keras"}
    out = "runs/decoding"

    @classmethod
    def add_arguments(cls, add):
        add("--batch-size", type=int, default=64)
        add("--text", help="as `reprt train --text`; else generated ids")
        add("--sentences", type=int, default=1803, help="at most")
        add(
            "--sample",
            action="append",
            default=["tutorial=12", "reprt:repe=256"],
            help="PEER=SENTENCES",
        )
        add(
            "--growth",
            nargs="*",
            type=int,
            default=[64, 128, 256, 512],
            help="tokens",
        )
        add("--growth-rounds", type=int, default=3)

    def __init__(self, options):
        text = _text(options)
        super().__init__(
            options,
            text,
            threads=os.cpu_count(),
            growth_sentences=GROWTH_SENTENCES,
        )
        self.lengths = [len(ids) for ids in text.source]
        self.samples = {}
        for sample in options.sample:
            peer, count = sample.split("=")
            self.samples[peer] = int(count)
        source, target = text.vocab_sizes
        self.results["work"] = (
            f"{len(text):,} sentences of {text.name}, vocabularies of {source:,} and "
            f"{target:,}. Translated to {TOKENS} tokens each: untrained, with [END] "
            f"forbidden. Batches of {options.batch_size} sentences of like length, "
            f"float32, {os.cpu_count()} threads. Where fewer sentences were timed, "
            "they are spread evenly over all lengths, and the last column is what all "
            "would take."
        )
        self.results |= {
            "searches": {},
            "agreement": {},
            "growth": {},
            "start": {},
        }

    def run(self):
        """Times all peers by turns, once they have shown that they are the same."""
        options, workers = self.options, {}
        with contextlib.ExitStack() as stack:
            # They start one after the other, so that nothing else runs meanwhile.
            for peer in self.peers:
                workers[peer] = stack.enter_context(self.worker(peer))
                self._start(peer, workers[peer])
            os.remove(self.weights)
            self._show_agreement(workers)
            for peer, worker in workers.items():
                self._warm_up(peer, worker)
            for number in range(options.rounds):
                self._round(number, workers)
            for peer, worker in workers.items():
                self.results["start"][peer]["memory"] = worker.ask("memory")
            if options.growth:
                self._grow(workers)
        self.write()

    def _start(self, peer, worker):
        settings = {"batch_size": self.options.batch_size}
        if peer in BASELINES and peer != OURS:
            settings["weights"] = self.weights
        answer = self.build(worker, **settings)
        if peer == OURS:
            worker.ask("save", path=self.weights)
        translation = self._translate(worker, self._sample(1), 1)
        answer["first"] = translation["seconds"]
        self.results["start"][peer] = answer

    def _show_agreement(self, workers):
        sentences = self._sample(SCORED_SENTENCES)
        our_scores = np.concatenate(
            workers[OURS].ask("scores", sentences=sentences)
        )
        for peer in self.peers[1:]:
            if peer not in BASELINES:
                continue
            scores = np.concatenate(
                workers[peer].ask("scores", sentences=sentences)
            )
            differences = np.abs(scores - our_scores)
            difference = float(np.max(differences[our_scores > FORBIDDEN]))
            row = {"scores": difference, "same": {}}
            self.results["agreement"][peer] = row
            # So that NaN fails, too.
            if not difference <= SCORE_DIFFERENCE:
                sys.exit(
                    f"{peer} is not the same model: {difference} from ours."
                )

    def _warm_up(self, peer, worker):
        """Translates batches of several shapes, for our graphs; XLA compiles each."""
        count = self._count(peer)
        by_xla = on_jax(peer) or peer.endswith("xla")
        if not by_xla:
            count = min(count, 2 * self.options.batch_size + 1)
        sentences = self._sample(count)
        for search in self._searches(peer):
            self._translate(worker, sentences, SEARCHES[search])

    def _round(self, number, workers):
        """Has all translate, in every other round in the opposite order."""
        for search, beam_size in SEARCHES.items():
            rows = self.results["searches"].setdefault(search, {})
            translations = {}
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
            if number % 2:
                peers.reverse()
            for peer in peers:
                sentences = self._sample(self._count(peer))
                answer = self._translate(workers[peer], sentences, beam_size)
                ids = answer["translations"]
                translations[peer] = dict(zip(sentences, ids))
                rows[peer]["seconds"].append(answer["seconds"])
                rows[peer]["tokens"].append(sum(len(row) for row in ids))
            for peer, row in self.results["agreement"].items():
                if peer in peers:
                    row["same"][search] = _agreement(
                        translations[OURS], translations[peer]
                    )

    def _grow(self, workers):
        """Times ever longer translations of a few sentences, by our models only."""
        rows, lengths = self.results["growth"], self.options.growth
        peers = [peer for peer in self.peers if peer in (OURS, *INFORMATION)]
        for peer in peers:
            rows[peer] = {tokens: [] for tokens in lengths}
        sentences = self._sample(GROWTH_SENTENCES)
        for number in range(1 + self.options.growth_rounds):
            for tokens in lengths:
                for peer in peers:
                    answer = self._translate(
                        workers[peer], sentences, 1, tokens
                    )
                    # The first time makes the graphs.
                    if number:
                        rows[peer][tokens].append(answer["seconds"])

    def _translate(self, worker, sentences, beam_size, tokens=TOKENS):
        return worker.ask(
            "translate",
            sentences=sentences,
            beam_size=beam_size,
            max_tokens=tokens,
        )

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
        """Returns the number of sentences that a peer translates."""
        count = len(self.lengths)
        return min(count, self.samples.get(peer, count))


def _agreement(our_translations, translations) -> str:
    """Says how many translations are ours, of those that both have."""
    count = same = 0
    for number, ids in translations.items():
        if number in our_translations:
            count += 1
            if our_translations[number] == ids:
                same += 1
    return f"{same:,} of {count:,}"


def _text(options):
    """Returns the test split of a corpus, in its own vocabularies, or generated ids."""
    if not options.text:
        return generate(options.sentences)
    from reprt.data import cache, encode, find
    from reprt.data.tokenizers.wordpiece import WordPieceSettings

    corpus = find(options.text, PAIR)
    text = encode(corpus, WordPieceSettings(), MAX_TOKENS, cache())
    sizes = len(text.source_tokenizer), len(text.target_tokenizer)
    test = Text(
        f"{corpus.name}, test", sizes, text.test.source, text.test.target
    )
    return test.first(options.sentences)
