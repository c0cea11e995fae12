"""Models of the tests, each a preset's name and the settings that differ from it."""

import itertools

from reprt.layers.embedding_norms import EMBEDDING_NORMS
from reprt.layers.positions import POSITIONS
from reprt.models.presets import preset

PREFIX = {"decoder_statistics": "prefix"}
BEFORE = {
    "norm_place": "before",
    "activation": "gelu",
    "layer_norm_epsilon": 1e-5,
}
REPE = {"position": "concat", "embedding_norm": "token_norm", "value": "tokens"}


def label(settings):
    return " ".join(f"{key}={value}" for key, value in settings.items())


GRID = [
    {"embedding_norm": norm, "position": position, "value": value}
    for norm, position, value in itertools.product(
        ("token_norm", "none"), ("concat", "add"), ("tokens", "states")
    )
]
PAPERS = {
    "repe": ("repe", {}),
    "baseline": ("baseline", {}),
    "repe, prefix": ("repe", PREFIX),
    "repe, prefix on both sides": (
        "repe",
        {**PREFIX, "encoder_statistics": "prefix"},
    ),
    "repe, padding counts": ("repe", {"padding_in_statistics": True}),
    "baseline, to the letter": (
        "baseline",
        {"scale": "inverse_sqrt", "table": "paper"},
    ),
    "repe, unscaled": ("repe", {"scale": "none"}),
    **{label(settings): ("repe", settings) for settings in GRID},
}
# Every registered method of positions, and a narrow P where it has a width.
POSITIONED = {
    f"position={name}": (
        "repe-causal",
        {
            "position": name,
            **({"position_dim": 4} if kind.has_width else {}),
        },
    )
    for name, kind in POSITIONS.items()
}
POSITIONED["position=untied, queries and keys as they are"] = (
    "repe-causal",
    {"position": "untied", "query_key_norm": False, "value": "states"},
)
# The same in a decoder-only model, with RePE's other changes.
ONE_SEQUENCE = {
    f"one sequence, {label}": (
        "decoder-only",
        {"embedding_norm": "rms", "value": "tokens", **settings},
    )
    for label, (_, settings) in POSITIONED.items()
    if "value" not in settings
}
INNER_NORMS = {"embedding_norm": "rms", "query_key_norm": True}
# What Transformers elsewhere have; the original and the modern one among them.
FAMILY = {
    "tied, one table": ("transformer-base", {}),
    "norms before": ("baseline", {**BEFORE, "final_norm": "both"}),
    "norms after, a last one": ("transformer-base", {"final_norm": "decoder"}),
    "norms before, tied": ("transformer-modern", {}),
    "norms before, repe, projected": (
        "repe",
        {**BEFORE, **PREFIX, "output_tying": "projected"},
    ),
    "repe, projected, one table": (
        "repe",
        {"output_tying": "projected", "shared_embedding": True},
    ),
    "repe, root mean squares": ("repe", {"embedding_norm": "rms"}),
    "baseline, root mean squares": ("baseline", {"embedding_norm": "rms"}),
    "repe, queries and keys normed": (
        "repe",
        {**PREFIX, "query_key_norm": True},
    ),
    "baseline, queries and keys normed": ("baseline", {"query_key_norm": True}),
    "repe, causal": ("repe-causal", {}),
    "baseline, no gains": ("baseline", {"layer_norm_gains": False}),
    "baseline, a norm in the decoder": ("baseline", {"decoder_norm": "rms"}),
    "repe, a norm for each side": ("repe", {"decoder_norm": "rms"}),
    "repe, a norm in the encoder": ("repe", {"decoder_norm": "none"}),
    "norms before, normed": ("baseline", {**BEFORE, **INNER_NORMS}),
    "gated by SiLU": ("baseline", {"activation": "swiglu"}),
    "norms before, gated by GELU": ("repe", {**BEFORE, "activation": "geglu"}),
}
ALL = {**PAPERS, **FAMILY, **POSITIONED}
# One of each kind that is compared, and what differs in its run.
COMPARED = {
    "repe": ("repe", {}, {}),
    "repe-prefix": ("repe", PREFIX, {}),
    "repe-causal": ("repe-causal", {}, {}),
    "baseline": ("baseline", {}, {}),
    "original": ("transformer-base", {}, {}),
    "modern": ("transformer-modern", {}, {}),
    "decoder-only": ("decoder-only", {}, {}),
    "decoder-only-both-losses": (
        "decoder-only",
        {},
        {
            "objective": {
                "name": "translation_and_source",
                "label_smoothing": 0.1,
            }
        },
    ),
    "recurrent": ("recurrent", {}, {}),
    # Clipping acts on the gradient of the whole batch.
    "clipped": (
        "baseline",
        {},
        {"optimizer": {"name": "sgd", "global_clipnorm": 0.1}},
    ),
}


def sees_ahead(variant):
    config = preset(ALL[variant][0], **ALL[variant][1])
    norm = config.norm_of("decoder")
    return norm == "token_norm" and config.decoder_statistics == "sequence"


def norm_settings():
    """Every registered norm of embeddings with each of its settings, by a label."""
    for name, statistics in itertools.product(
        EMBEDDING_NORMS, ("sequence", "prefix")
    ):
        settings = {"embedding_norm": name, "decoder_statistics": statistics}
        try:
            preset("repe", **settings)
        except ValueError:  # not a setting of this norm
            continue
        yield f"{name}, {statistics}", settings


NORMS = dict(norm_settings())
