import pickle

import pytest


@pytest.fixture
def in_process(monkeypatch):
    """Jobs' processes are this one; one of its own would load TensorFlow.

    What goes to one, and comes back, is pickled all the same. test_processes.py starts
    some.
    """
    from reprt.jobs import job

    def call(*work):
        function, *arguments = pickle.loads(pickle.dumps(work))
        return pickle.loads(pickle.dumps(function(*arguments)))

    monkeypatch.setattr(job, "in_own_process", call)


@pytest.fixture
def briefly(monkeypatch):
    """Nothing is traced; few steps are measured, and translations end soon."""
    import tensorflow as tf

    from reprt.decoding import beam_search
    from reprt.training import trainer

    monkeypatch.setattr(trainer, "CALIBRATION_STEPS", 1)
    monkeypatch.setattr(beam_search, "EXTRA_TOKENS", 2)
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
