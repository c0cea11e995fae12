"""Settings of every test process; a tiny text, models, trainers and run folders."""

import os
import pickle
import signal

import eager
import numpy as np
import pytest
import tiny

# Before TensorFlow loads: no greeting, and no look for a GPU that tests do not use.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
# Two files run at once, and threads that wait for work take time from the other.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
# What a shell starts in the background is deaf to Ctrl-C, and so are its children.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

from reprt.data.corpora import embedded  # noqa: E402
from reprt.data.encoding import encode  # noqa: E402
from reprt.lab.folder import RunFolder  # noqa: E402

# Files of a few long tests; begun last, they would keep one process busy alone.
FIRST = (
    "test_benchmark.py",
    "test_ray_executor.py",
    "test_workers.py",
    "test_resume.py",
    "test_packing.py",
    "test_distribution.py",
    "test_jax_backend.py",
    "test_plan.py",
    "test_trials.py",
    "test_saving.py",
)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in FIRST)


@pytest.fixture(autouse=True, scope="module")
def no_determinism_is_left():
    """What one file's trainings have asked of TensorFlow, XLA refuses in the next."""
    from tensorflow.python.framework import config

    config.disable_op_determinism()


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    """33 training pairs, so that batches of 16 leave one over."""
    corpus = embedded.load(train=33, dev=10, test=4)
    return encode(corpus, tiny.VOCABULARY, 24, tmp_path_factory.mktemp("vocabularies"))


@pytest.fixture(scope="session")
def settings():
    """A function that returns the settings of a tiny run."""
    return tiny.settings


@pytest.fixture
def eagerly():
    """The steps of trainers are neither traced nor packed."""
    with eager.training():
        yield


@pytest.fixture
def unpacked(monkeypatch):
    """Trainers leave batches padded, which takes half the time where they are tiny."""
    eager.unpack(monkeypatch)


@pytest.fixture
def trainer(text, settings, tmp_path):
    """A function that returns a tiny trainer; the same folder continues a run."""
    from reprt.training.trainer import Trainer

    def build(folder, *arguments, **keywords):
        run = settings(*arguments, **keywords)
        files = RunFolder(tmp_path / folder)
        files.open(run, text)
        return Trainer(run, text, files, tiny.Lines())

    return build


@pytest.fixture(scope="session")
def variables():
    """A function that returns copies of all that a checkpoint holds of a trainer."""
    return lambda trainer: [each.numpy() for each in trainer._variables.values()]


@pytest.fixture(scope="session")
def assert_same():
    """A function that compares lists of arrays, bit for bit or nearly so."""

    def compare(these, those, tolerance=0.0):
        for this, that in zip(these, those, strict=True):
            np.testing.assert_allclose(this, that, rtol=0, atol=tolerance)

    return compare


@pytest.fixture
def in_process(monkeypatch):
    """Jobs' processes are this one; one of its own would load TensorFlow.

    What goes to one, and comes back, is pickled all the same. test_processes.py starts
    some.
    """
    from reprt.lab import job

    def call(*work):
        function, *arguments = pickle.loads(pickle.dumps(work))
        return pickle.loads(pickle.dumps(function(*arguments)))

    monkeypatch.setattr(job, "in_own_process", call)


@pytest.fixture
def briefly(monkeypatch, unpacked):
    """Nothing is traced; few steps are measured, and translations end soon."""
    import tensorflow as tf

    from reprt.decoding import beam_search
    from reprt.training import trainer

    monkeypatch.setattr(trainer, "CALIBRATION_STEPS", 1)
    monkeypatch.setattr(beam_search, "EXTRA_TOKENS", 2)
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
