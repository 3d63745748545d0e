"""Batched evaluations: every thread gets its own answer, batches are bounded, errors reach those who asked."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from envs import engine_for, load_variant
from models.evaluator import OnnxEvaluator, TorchEvaluator, export_graph, weights_of
from models.network import GameSpec, NetworkConfig, example_inputs, untrained_network
from train.config import from_document
from train.inference import BatchingEvaluator, InferenceService, RemoteEvaluator, inference_evaluator
from train.worker import WorkerTask

CONFIG = from_document({"variant": "gardner", "network": {"blocks": 1, "channels": 8}, "workers": 2})


class Recorder:
    """Answers with each row's own mark, slowly; remembers the batches."""

    def __init__(self):
        self.rows = []

    def __call__(self, observations, legal_actions):
        self.rows.append(len(observations))
        time.sleep(0.01)
        marks = observations.reshape(len(observations), -1)[:, 0]
        return np.where(legal_actions >= 0, legal_actions + marks[:, None], np.nan), np.repeat(marks[:, None], 3, 1)


def request(mark: float, rows: int, width: int):
    legal = np.arange(rows * width, dtype=np.int32).reshape(rows, width)
    legal[:, -1] = -1
    return np.full((rows, 2, 3, 3), mark, np.float32), legal


def test_each_thread_gets_its_own_rows_whatever_they_were_batched_with():
    recorder = Recorder()
    evaluator = BatchingEvaluator(recorder, max_rows=64, max_wait_s=0.05, max_requests=8)

    def ask(number: int) -> None:
        for turn in range(5):
            observations, legal = request(100 * number + turn, 1 + number, 2 + (number + turn) % 4)
            logits, wdl = evaluator(observations, legal)
            assert logits.shape == legal.shape
            np.testing.assert_array_equal(logits[:, :-1], legal[:, :-1] + 100 * number + turn)
            np.testing.assert_array_equal(wdl, np.full((1 + number, 3), 100 * number + turn))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    assert sum(recorder.rows) == 5 * sum(range(1, 9))
    assert max(recorder.rows) > 8  # they did share batches


def test_batches_are_bounded_in_rows_and_a_larger_request_is_one_of_its_own():
    recorder = Recorder()
    evaluator = BatchingEvaluator(recorder, max_rows=10, max_wait_s=0.2, max_requests=8)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda rows: evaluator(*request(1, rows, 3)), [4, 4, 4, 4, 25, 4, 4]))
    assert sorted(recorder.rows)[-1] == 25
    assert all(rows <= 10 for rows in recorder.rows if rows != 25)
    assert sum(recorder.rows) == 49


def test_a_batch_does_not_wait_for_more_than_all_clients():
    evaluator = BatchingEvaluator(Recorder(), max_rows=10**6, max_wait_s=30.0, max_requests=2)
    began = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda rows: evaluator(*request(1, rows, 3)), [4, 5]))
    assert time.monotonic() - began < 10


def test_an_error_reaches_everyone_in_its_batch_and_the_next_batch_is_served():
    def fails_on_negative(observations, legal_actions):
        if observations.min() < 0:
            raise FloatingPointError("not finite")
        return Recorder()(observations, legal_actions)

    evaluator = BatchingEvaluator(fails_on_negative, max_rows=100, max_wait_s=0.0, max_requests=4)
    with pytest.raises(FloatingPointError, match="not finite"):
        evaluator(*request(-1, 2, 3))
    assert evaluator(*request(7, 2, 3))[1][0, 0] == 7


@pytest.fixture(scope="module")
def network():
    spec = GameSpec.of(engine_for(load_variant("gardner")))
    return untrained_network(spec, NetworkConfig(**CONFIG.network.model_dump()), seed=3)


@pytest.fixture(scope="module")
def task(network):
    cfg = CONFIG.model_copy(update={"ray": CONFIG.ray.model_copy(update={"inference_wait_ms": 20.0})})
    return WorkerTask.of(cfg, load_variant("gardner"), life=0, graph=export_graph(network)), cfg.ray


def test_a_remote_evaluator_brings_the_weights_once_and_again_after_a_restart(network, task):
    task, cfg = task
    weights, published = weights_of(network), []
    services = [InferenceService(task, "cpu", cfg, 2)]

    def evaluate(version, observations, legal_actions):
        return services[-1].evaluate(version, observations, legal_actions)

    def publish(version, reference):
        published.append(version)
        services[-1].publish(version, weights)

    evaluators = [RemoteEvaluator(evaluate, publish) for _ in range(2)]
    inputs = [example_inputs(network.spec, rows, width) for rows, width in ((5, 7), (9, 3))]
    own = OnnxEvaluator(task.graph)
    own.publish(weights)
    for version in (1, 2, 2):
        if version == 2:
            services.append(InferenceService(task, "cpu", cfg, 2))  # one that has been started again
        for evaluator in evaluators:
            evaluator.adopt(version, "where they are")
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda pair: pair[0](*pair[1]), zip(evaluators, inputs, strict=True)))
        for answer, expected in zip(found, (own(*one) for one in inputs), strict=True):
            for mine, right in zip(answer, expected, strict=True):
                np.testing.assert_allclose(mine, right, atol=1e-5)
    assert published.count(1) >= 1
    assert len(published) <= 6
    services[-1].publish(1, {})  # older weights are ignored


def test_the_evaluator_of_a_gpu_takes_the_same_weights(network, task):
    """On a CPU here: what is built from the task's settings, not from its graph."""
    weights = weights_of(network)
    evaluator = inference_evaluator(task[0], "cpu:0")
    assert isinstance(evaluator, TorchEvaluator)
    evaluator.publish(weights)
    own = OnnxEvaluator(task[0].graph)
    own.publish(weights)
    inputs = example_inputs(network.spec, 6, 9)
    listed = inputs[1] >= 0
    np.testing.assert_allclose(evaluator(*inputs)[0][listed], own(*inputs)[0][listed], atol=1e-4)
    np.testing.assert_allclose(evaluator(*inputs)[1], own(*inputs)[1], atol=1e-4)
