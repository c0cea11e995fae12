"""Special ids, the names that settings choose among, the bounds of search and audit."""

PAD, UNKNOWN, START, END = "[PAD]", "[UNK]", "[START]", "[END]"
RESERVED = (PAD, UNKNOWN, START, END)
PAD_ID, UNKNOWN_ID, START_ID, END_ID = range(len(RESERVED))

SCALES = ("sqrt", "inverse_sqrt", "none")
STATISTICS = ("sequence", "prefix")
SINUSOIDS = ("tutorial", "paper")
TABLES = (*SINUSOIDS, "learned")
EMBEDDING_NORMS = ("none", "token_norm", "rms")
NORM_PLACES = ("after", "before")
TUTORIAL_DROPOUT = ("embeddings", "attention_weights", "feed_forward_output")
OF_STATES = (*TUTORIAL_DROPOUT, "attention_output")
DROPOUT_PLACES = (*OF_STATES, "values")
LAYOUTS = ("sides", "sequence")  # of packed sentences

QUANTIZATIONS = ("float32", "int8")  # of exports to CTranslate2

LENGTH_PENALTY = 0.6  # as in the original Transformer
STEEPEST_PENALTY = 10  # beyond it, long translations' scores leave float32
MOST_BEAMS = 1000

AUDITED_TOKENS = 12  # of the target
