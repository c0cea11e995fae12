"""One module for each way to translate; none but `reprt` imports ours.

Each has a class `Peer(settings)` with

- `packages`: those whose versions belong beside its numbers,
- `translate(source, beam_size, max_tokens)`: of each sentence's ids the best
  translation's, without start and end,
- `scores(source, target)`: the log-probability of each token of given translations,

and ours `weights()`, a list of arrays, which the others get.

Weights are in the order of `peers`.
"""
