"""Settings of every test process; a tiny text, models, trainers and run folders."""

import os
import pickle
import signal

import pytest

# Before TensorFlow loads: no greeting, and no look for a GPU that tests do not use.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
# Two files run at once, and threads that wait for work take time from the other.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
# What XLA compiles is used once, and need not be fast.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
# What a shell starts in the background is deaf to Ctrl-C, and so are its children.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import eager  # noqa: E402
import tiny  # noqa: E402

from reprt.data.encoding import encode  # noqa: E402

# Files of a few long tests; begun last, they would keep one process busy alone.
LONG_FILES = (
    "test_benchmark test_ray_executor test_workers test_resume test_packing "
    "test_distribution test_jax_backend test_plan test_trials test_saving test_cli "
    "test_processes test_cached_decoding test_beam_search test_harness test_trainer "
    "test_documentation test_new_family test_language_model test_optimizers "
    "test_keras_versions test_any_model"
).split()


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem not in LONG_FILES)


@pytest.fixture(autouse=True, scope="module")
def allow_nondeterminism():
    """What one file's trainings have asked of TensorFlow, XLA refuses in the next."""
    from tensorflow.python.framework import config

    config.disable_op_determinism()


@pytest.fixture(autouse=True, scope="session")
def cache_folder(tmp_path_factory):
    """Texts of tests are kept with the tests' files, and not with the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    """33 training pairs, so that batches of 16 leave one over."""
    corpus = tiny.corpus(train=33, dev=10, test=4)
    return encode(
        corpus, tiny.VOCABULARY, 24, tmp_path_factory.mktemp("vocabularies")
    )


@pytest.fixture
def eagerly():
    """The steps of trainers are neither traced nor packed."""
    with eager.training():
        yield


@pytest.fixture
def trainer(text, tmp_path):
    """A function that returns a tiny trainer; the same folder continues a run."""

    def build(folder, *arguments, **keywords):
        run = tiny.settings(*arguments, **keywords)
        return tiny.make_trainer(tmp_path / folder, run, text)

    return build


@pytest.fixture
def in_process(monkeypatch):
    """Jobs run in this process, which has TensorFlow; all is pickled as for others."""
    from reprt_lab import job

    def call(*work):
        function, *arguments = pickle.loads(pickle.dumps(work))
        return pickle.loads(pickle.dumps(function(*arguments)))

    monkeypatch.setattr(job, "in_own_process", call)


@pytest.fixture
def briefly(monkeypatch):
    """Nothing is traced or packed; few steps are measured, translations end soon."""
    import tensorflow as tf

    from reprt.decoding import beam_search
    from reprt.training import trainer

    eager.unpack(monkeypatch)
    monkeypatch.setattr(trainer, "CALIBRATION_STEPS", 1)
    monkeypatch.setattr(beam_search, "EXTRA_TOKENS", 2)
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
