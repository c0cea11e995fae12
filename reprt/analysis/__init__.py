"""What a trained model knows: losses, scores, and whether it looks ahead."""

from reprt.imports import import_lazily

_HOMES = {
    "Audit": "reprt.analysis.lookahead",
    "Evaluation": "reprt.analysis.evaluation",
    "LabelCheck": "reprt.analysis.lookahead",
    "assert_causal": "reprt.analysis.lookahead",
    "audit": "reprt.analysis.lookahead",
    "check_labels": "reprt.analysis.lookahead",
    "evaluate": "reprt.analysis.evaluation",
    "log_probabilities": "reprt.analysis.evaluation",
    "prefix_loss": "reprt.analysis.evaluation",
    "teacher_forced_loss": "reprt.analysis.evaluation",
    "translation_scores": "reprt.analysis.evaluation",
}
__all__ = [*_HOMES]
__getattr__ = import_lazily(__name__, _HOMES)
