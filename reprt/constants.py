"""Special ids and the names that settings choose among."""

PAD, UNKNOWN, START, END = "[PAD]", "[UNK]", "[START]", "[END]"
RESERVED = (PAD, UNKNOWN, START, END)
PAD_ID, UNKNOWN_ID, START_ID, END_ID = range(len(RESERVED))

SCALES = ("sqrt", "inverse_sqrt", "none")
STATISTICS = ("sequence", "prefix")
TABLES = ("tutorial", "paper")
EMBEDDING_NORMS = ("none", "token_norm")
NORM_PLACES = ("after", "before")
TUTORIAL_DROPOUT = ("embeddings", "attention_weights", "feed_forward_output")
DROPOUT_PLACES = (*TUTORIAL_DROPOUT, "attention_output")
