"""One module for each implementation that is compared; none but `reprt*` imports ours.

Each has a class `Peer(settings)` with `packages`, whose versions belong beside its
numbers, and `load(weights)`, which takes the weights from a list of arrays. One that
trains also has

- `parameters`: how many there are to train,
- `step(batch)`: one training step on a padded batch; returns its loss,
- `batches(pairs)` and `fit(batches)`: an epoch, by the loop that the library's users
  write.

One that translates has `translate(source, beam_size, max_tokens)`, of each sentence's
ids the best translation's, without start and end, and `scores(source, target)`, the
log-probability of each token of given translations.

Ours has `weights()`, which makes the list, `operations(pairs)`, the floating-point
operations of a step's products without padding, and `square_product(size)`, which
returns what multiplies two square matrices.

The order of the weights is that of our model: source and target embedding; then for
each encoder block and each decoder block its attentions (query, key, value, output;
kernel and bias each), the feed-forward network and the LayerNormalizations (gamma and
beta), in the order in which they are applied; then the output layer. The shapes are
those of Keras.
"""
