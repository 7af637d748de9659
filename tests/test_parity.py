"""`utils.parity` on healthy loops, which it must not accuse, and on loops that break."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import parity_patients as patients
import pytest
import tensorflow as tf

from utils import parity, training

pytestmark = pytest.mark.slow

# --- healthy loops, in as many styles as we could think of ---------------------------------------


def aligned(y, prediction):
    return tf.reshape(y, tf.shape(prediction)) if prediction.shape[-1] == 1 else y


def library(model, optimizer, loss, dataset, epochs):
    """The loop of lesson 1."""
    return training.train(
        model, optimizer, lambda y, p: loss(aligned(y, p), p), dataset, epochs, compiled=False
    )


def by_train_on_batch(model, optimizer, loss, dataset, epochs):
    model.compile(optimizer, loss)
    history = []
    for _ in range(epochs):
        losses = [(model.train_on_batch(x, y), len(y)) for x, y in dataset]
        history.append(np.average([v for v, _ in losses], weights=[n for _, n in losses]))
    return {"loss": history}


def by_fit(model, optimizer, loss, dataset, epochs):
    model.compile(optimizer, loss)
    return model.fit(dataset, epochs=epochs, verbose=0, shuffle=False)


def by_train_step(model, optimizer, loss, dataset, epochs):
    class Wrapped(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner, self.mean = model, keras.metrics.Mean(name="loss")

        def call(self, x, training=False):
            return self.inner(x, training=training)

        @property
        def metrics(self):
            return [self.mean]

        def train_step(self, batch):
            x, y = batch
            with tf.GradientTape() as tape:
                prediction = self(x, training=True)
                value = loss(aligned(y, prediction), prediction) + sum(self.losses)
            gradients = tape.gradient(value, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            self.mean.update_state(value, sample_weight=tf.shape(y)[0])
            return {"loss": self.mean.result()}

    wrapped = Wrapped()
    wrapped.compile(optimizer)
    return wrapped.fit(dataset, epochs=epochs, verbose=0, shuffle=False).history


def by_slices(model, optimizer, loss, dataset, epochs):
    """Takes its data from arrays, not from the dataset that it is given."""
    x, y = (np.concatenate(part) for part in zip(*dataset.as_numpy_iterator()))
    means = []
    for _ in range(epochs):
        total = 0.0
        for begin in range(0, len(x), patients.BATCH):
            end = min(begin + patients.BATCH, len(x))
            with tf.GradientTape(persistent=True) as tape:
                prediction = model(x[begin:end], training=True)
                value = loss(aligned(y[begin:end], prediction), prediction)
                value += sum(model.losses)
            gradients = [tape.gradient(value, v) for v in model.trainable_variables]
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            total += float(value) * (end - begin)
        means.append(total / len(x))
    return {"loss": means}


def by_iterator(model, optimizer, loss, dataset, epochs):
    steps = len(dataset)
    for _ in range(epochs):
        batches = iter(dataset)
        step = 0
        while step < steps:
            x, y = batches.get_next()
            with tf.GradientTape() as tape:
                prediction = model(x, training=True)
                parts = [loss(aligned(y, prediction), prediction), *model.losses]
                value = tf.math.add_n(parts)
            optimizer.apply(tape.gradient(value, model.trainable_weights), model.trainable_weights)
            step += 1


def by_keras_parts(model, optimizer, loss, dataset, epochs):
    model.compile(optimizer=optimizer, loss=loss)
    mean = keras.metrics.Mean()

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            value = model.compute_loss(x=x, y=y, y_pred=model(x, training=True))
        optimizer.apply(tape.gradient(value, model.trainable_variables), model.trainable_variables)
        mean.update_state(value, sample_weight=tf.shape(y)[0])

    history = []
    for _ in range(epochs):
        mean.reset_state()
        for x, y in dataset:
            step(x, y)
        history.append(mean.result())
    return {"loss": history}


def by_strategy(model, optimizer, loss, dataset, epochs):
    optimizer.build(model.trainable_variables)

    def step(x, y):
        with tf.GradientTape() as tape:
            prediction = model(x, training=True)
            value = loss(aligned(y, prediction), prediction) + sum(model.losses)
        optimizer.apply_gradients(
            zip(tape.gradient(value, model.trainable_variables), model.trainable_variables)
        )
        return value

    @tf.function
    def everything(epochs):
        for _ in tf.range(epochs):
            for x, y in dataset:
                tf.distribute.get_strategy().run(step, args=(x, y))

    everything(tf.constant(epochs))


def by_halves(model, optimizer, loss, dataset, epochs):
    """Adds the gradients of the parts of a batch; without BatchNormalization that is the same."""
    for _ in range(epochs):
        for x, y in dataset:
            sums = [tf.zeros_like(v) for v in model.trainable_variables]
            for part in (slice(0, 5), slice(5, None)):
                with tf.GradientTape() as tape:
                    prediction = model(x[part], training=True)
                    share = len(y[part]) / len(y)
                    value = loss(aligned(y[part], prediction), prediction) * share
                gradients = tape.gradient(value, model.trainable_variables)
                sums = [s + tf.convert_to_tensor(g) for s, g in zip(sums, gradients)]
            optimizer.apply_gradients(zip(sums, model.trainable_variables))


def with_xla(model, optimizer, loss, dataset, epochs):
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=True)
    def step(x, y):
        with tf.GradientTape() as tape:
            prediction = model(x, training=True)
            value = loss(aligned(y, prediction), prediction) + sum(model.losses)
        optimizer.apply_gradients(
            zip(tape.gradient(value, model.trainable_variables), model.trainable_variables)
        )

    for _ in range(epochs):
        for x, y in dataset:
            step(x, y)


def own_formula(model, optimizer, loss, dataset, epochs):
    """Writes the loss out instead of calling it."""
    for _ in range(epochs):
        for x, y in dataset:
            with tf.GradientTape() as tape:
                prediction = model(x, training=True)
                if prediction.shape[-1] == 3:
                    chosen = tf.gather(tf.nn.log_softmax(prediction), y, batch_dims=1)
                    value = -tf.reduce_mean(chosen)
                else:
                    error = tf.squeeze(prediction, 1) - y
                    value = tf.tensordot(error, error, 1) / len(y)
                value += sum(model.losses)
            optimizer.apply_gradients(
                zip(tape.gradient(value, model.trainable_variables), model.trainable_variables)
            )


STYLES = {
    "textbook eager": patients.textbook(compiled=False),
    "textbook compiled": patients.textbook(),
    "graph epoch": patients.graph_epoch(),
    "by hand": patients.by_hand(),
    "lesson 1": library,
    "train_on_batch": by_train_on_batch,
    "fit": by_fit,
    "train_step": by_train_step,
    "slices": by_slices,
    "iterator": by_iterator,
    "Keras parts": by_keras_parts,
    "one graph": by_strategy,
    "halves": by_halves,
    "XLA": with_xla,
    "own formula": own_formula,
}


def cases():
    """Every style on every kind of set-up."""
    for style in STYLES:
        for kind in patients.KINDS:
            if style == "halves" and kind != "regression":
                # BatchNormalization sees the halves; RMSprop squares the rows of an embedding's
                # gradient one by one, if it is not made a full matrix.
                continue
            yield style, kind


@pytest.mark.parametrize(("style", "kind"), list(cases()))
def test_healthy_loop_is_not_accused(style, kind):
    setup = patients.setup(kind, l2=0.0 if style == "halves" else 0.01)
    report = parity.compare(setup, STYLES[style])
    assert report.causes == ()
    assert report.equal, str(report)
    assert report.first_step is None
    assert report.variable is None


# --- loops that break ----------------------------------------------------------------------------


def raises(model, optimizer, loss, dataset, epochs):
    for x, _ in dataset:
        model(tf.concat([x, x], axis=1))


def raises_in_a_graph(model, optimizer, loss, dataset, epochs):
    @tf.function
    def step(x, y):
        if tf.reduce_sum(x) < 1e9:
            nothing = missing_name + 1  # noqa: F821, F841

    for x, y in dataset:
        step(x, y)


def returns_a_word(model, optimizer, loss, dataset, epochs):
    patients.textbook()(model, optimizer, loss, dataset, epochs)
    return "done"


def returns_words(model, optimizer, loss, dataset, epochs):
    patients.textbook()(model, optimizer, loss, dataset, epochs)
    return {"loss": ["high", "low", "lower"]}


def never_steps(model, optimizer, loss, dataset, epochs):
    return {"loss": [float(loss(y, model(x)[:, 0])) for x, y in dataset.take(epochs)]}


def steps_by_zero(model, optimizer, loss, dataset, epochs):
    for x, _ in dataset:
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(model(x)) * 0.0
        optimizer.apply(tape.gradient(value, model.trainable_variables), model.trainable_variables)


def trains_a_copy(model, optimizer, loss, dataset, epochs):
    copy = keras.models.clone_model(model)
    return patients.textbook()(copy, optimizer, loss, dataset, epochs)


def explodes(model, optimizer, loss, dataset, epochs):
    optimizer.learning_rate = 1e30
    return patients.textbook()(model, optimizer, loss, dataset, epochs)


def grows(model, optimizer, loss, dataset, epochs):
    model.add(keras.layers.Dense(1))
    return patients.textbook()(model, optimizer, loss, dataset, epochs)


def exits(model, optimizer, loss, dataset, epochs):
    sys.exit(3)


def needs_a_sixth(model, optimizer, loss, dataset, epochs, sixth):
    return None


@pytest.mark.parametrize(
    ("loop", "words"),
    [
        (raises, "raised ValueError at `model(tf.concat([x, x], axis=1))`"),
        (raises_in_a_graph, "raised NameError"),
        (returns_a_word, "returned str"),
        (returns_words, "no list of numbers under 'loss'"),
        (never_steps, "never changed the model"),
        (steps_by_zero, "none changed the model"),
        (trains_a_copy, "none changed the model"),
        (explodes, "NaN"),
        (grows, "its variables are not what they were"),
        (exits, "raised SystemExit"),
        (needs_a_sixth, "raised TypeError"),
    ],
)
def test_broken_loop_gets_a_sentence(loop, words):
    report = parity.compare(patients.setup("regression"), loop)
    assert report.verdict == "broken"
    assert not report.equal
    assert words in report.summary
    assert "Traceback" not in str(report)


def test_weights_are_judged_even_if_the_history_is_nonsense():
    report = parity.compare(patients.setup("regression"), returns_a_word)
    assert "Its weights are those of `fit`" in report.summary


def sleeps(model, optimizer, loss, dataset, epochs):
    while True:
        time.sleep(0.1)


def swallows(model, optimizer, loss, dataset, epochs):
    for _ in range(2):
        try:  # noqa: SIM105
            time.sleep(60)
        except:  # noqa: E722
            pass


def repeats_in_a_graph(model, optimizer, loss, dataset, epochs):
    @tf.function
    def everything():
        for x, _ in dataset.repeat():
            model(x)

    everything()


@pytest.mark.parametrize("loop", [sleeps, swallows, repeats_in_a_graph])
def test_endless_loop_is_stopped(loop):
    started = time.monotonic()
    report = parity.compare(patients.setup("regression"), loop, time_limit=2)
    assert time.monotonic() - started < 40
    assert report.verdict == "broken"
    if loop is not swallows:
        assert "stopped after 2 s" in report.summary


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no alarm on this system")
def test_someone_elses_alarm_is_given_back():
    before = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)[0]
    signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_REAL, 300)
    try:
        parity.compare(patients.setup("regression"), patients.textbook())
        assert 200 < signal.getitimer(signal.ITIMER_REAL)[0] < 300
    finally:
        signal.signal(signal.SIGALRM, before[0])
        signal.setitimer(signal.ITIMER_REAL, before[1])


def test_a_loop_that_does_not_repeat_itself_is_told_so():
    calls = []

    def moody(model, optimizer, loss, dataset, epochs):
        calls.append(1)
        optimizer.learning_rate = 0.01 * len(calls)
        return patients.textbook("loss_summed")(model, optimizer, loss, dataset, epochs)

    report = parity.compare(patients.setup("regression"), moody)
    assert report.verdict == "different"
    assert report.causes == ()
    assert "does not repeat itself" in str(report)


def test_an_unknown_bug_is_not_named_but_located():
    def later(model, optimizer, loss, dataset, epochs):
        for _ in range(epochs):
            for k, (x, y) in enumerate(dataset):
                with tf.GradientTape() as tape:
                    prediction = model(x * 0.5 if k == 2 else x, training=True)
                    value = loss(aligned(y, prediction), prediction)
                optimizer.apply(
                    tape.gradient(value, model.trainable_variables), model.trainable_variables
                )

    report = parity.compare(patients.setup("regression"), later)
    assert report.verdict == "different"
    assert report.causes == ()
    assert report.first_step == 3
    assert "No known fault" in str(report)
    assert "cut to its first 3 batches; with 2 they agree" in report.summary
    assert "what batch 3 has" in str(report)


def strange(*, in_step=lambda model, x: None, after_epoch=lambda model, epoch: None):
    """A healthy loop, but for something that no catalogue has."""

    def train(model, optimizer, loss, dataset, epochs):
        variables = model.trainable_variables
        for epoch in range(epochs):
            for x, y in dataset:
                with tf.GradientTape() as tape:
                    prediction = model(x, training=True)
                    value = loss(aligned(y, prediction), prediction)
                optimizer.apply(tape.gradient(value, variables), variables)
                in_step(model, x)
            after_epoch(model, epoch)

    return train


def doubled_after(epoch):
    def change(model, now):
        if now >= epoch:
            model.weights[0].assign(2 * model.weights[0])

    return change


@pytest.mark.parametrize(
    ("kind", "loop", "where"),
    [
        (
            "classifier",
            strange(in_step=lambda model, x: [model(x, training=True) for _ in range(2)]),
            "Only weights that no gradient moves differ",
        ),
        ("regression", strange(after_epoch=doubled_after(0)), "what is done where an epoch ends"),
        ("regression", strange(after_epoch=doubled_after(1)), "what is done between epochs"),
    ],
)
def test_an_unknown_bug_leaves_a_place_to_look_at(kind, loop, where):
    report = parity.compare(patients.setup(kind), loop)
    assert report.causes == ()
    assert any(where in note for note in report.notes), str(report)


def test_a_function_compiled_outside_of_the_loop_can_be_run_again():
    @tf.function
    def step(model, optimizer, loss, x, y):
        with tf.GradientTape() as tape:
            prediction = model(x, training=True)
            value = loss(y[:, None], prediction)
        optimizer.apply(tape.gradient(value, model.trainable_variables), model.trainable_variables)

    def train(model, optimizer, loss, dataset, epochs):
        for _ in range(epochs):
            for x, y in dataset:
                step(model, optimizer, loss, x, y)

    setup = patients.setup("regression")
    assert parity.compare(setup, train).equal
    assert parity.compare(setup, train).equal


# --- set-ups -------------------------------------------------------------------------------------


def test_a_set_up_that_fit_cannot_train_is_refused():
    good = patients.setup("regression")
    loop = patients.textbook()
    cases = [
        ({"build_model": lambda: 3}, "build_model"),
        ({"build_dataset": lambda: [1, 2]}, "build_dataset"),
        ({"build_dataset": lambda: good.build_dataset().repeat()}, "never ends"),
        ({"loss": "no such loss"}, "fit"),
        ({"build_optimizer": lambda: keras.optimizers.SGD(1e30)}, "NaN"),
    ]
    for change, words in cases:
        with pytest.raises(parity.SetupError, match=words):
            parity.compare(parity.Setup(**{**vars(good), **change}), loop)
    with pytest.raises(TypeError, match="function"):
        parity.compare(good, "train")


def test_loss_by_name_and_model_without_weights_yet():
    class Lazy(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            return self.dense(x)

    good = patients.setup("regression")
    setup = parity.Setup(Lazy, good.build_optimizer, "mse", good.build_dataset)

    def train(model, optimizer, loss, dataset, epochs):
        def mean_loss(y, prediction):
            return tf.reduce_mean(loss(y, prediction))

        return patients.textbook()(model, optimizer, mean_loss, dataset, epochs)

    assert parity.compare(setup, train).equal


# --- logs ----------------------------------------------------------------------------------------


def test_log_fault_is_named_on_top_of_rounding_and_of_a_fault_of_the_weights():
    setup = patients.setup("classifier", l2=0.01)
    report = parity.compare(setup, patients.textbook("epoch_mean_unweighted", compiled=False))
    assert [cause.name for cause in report.causes] == ["epoch_mean_unweighted"]
    assert report.first_step is None
    assert "but for rounding" in report.summary

    def both(model, optimizer, loss, dataset, epochs):
        def summed(y, p):
            return loss(y, p) * float(y.shape[0] or 1)

        history = []
        for _ in range(epochs):
            values = []
            for x, y in dataset:
                with tf.GradientTape() as tape:
                    value = summed(y, model(x, training=True)) + sum(model.losses)
                variables = model.trainable_variables
                optimizer.apply(tape.gradient(value, variables), variables)
                values.append(float(value))
            history.append(np.mean(values))
        return {"loss": history}

    report = parity.compare(setup, both)
    assert {c.name for c in report.causes} == {"loss_summed", "epoch_mean_unweighted"}
    assert report.first_step == 1


@pytest.mark.parametrize(
    ("style", "names"),
    [
        ("right", []),
        ("never reset", ["metric_not_reset"]),
        ("mean of batches", ["epoch_mean_unweighted"]),
        ("last batch", ["last_batch_logged"]),
    ],
)
def test_metrics_are_compared_by_name(style, names):
    def train(model, optimizer, loss, dataset, epochs):
        metric = keras.metrics.SparseCategoricalAccuracy()
        history = []
        for _ in range(epochs):
            values = []
            if style != "never reset":
                metric.reset_state()
            for x, y in dataset:
                with tf.GradientTape() as tape:
                    prediction = model(x, training=True)
                    value = loss(y, prediction)
                variables = model.trainable_variables
                optimizer.apply(tape.gradient(value, variables), variables)
                if style in ("mean of batches", "last batch"):
                    metric.reset_state()
                metric.update_state(y, prediction)
                values.append(float(metric.result()))
            history.append(np.mean(values) if style == "mean of batches" else values[-1])
        return {"accuracy": history}

    setup = patients.setup("classifier", metrics=["accuracy"])
    report = parity.compare(setup, train)
    assert [cause.name for cause in report.causes] == names
    assert report.equal == (not names)


def test_unknown_logs_and_odd_lengths_are_not_equal():
    def halved(model, optimizer, loss, dataset, epochs):
        logs = patients.textbook()(model, optimizer, loss, dataset, epochs)
        return {"loss": [value / 2 for value in logs["loss"]]}

    def every_batch(model, optimizer, loss, dataset, epochs):
        patients.textbook()(model, optimizer, loss, dataset, epochs)
        return {"loss": [1.0] * 12, "other": [1.0]}

    report = parity.compare(patients.setup("regression"), halved)
    assert (report.verdict, report.causes) == ("different", ())
    assert "no known fault explains" in str(report)
    report = parity.compare(patients.setup("regression"), every_batch)
    assert report.verdict == "different"
    assert "12 values where `fit` returns 3" in str(report)


# --- what a learner sees -------------------------------------------------------------------------


def test_report_is_short_and_escapes_html():
    setup = patients.setup_for("order_frozen", "regression")
    report = parity.compare(setup, patients.textbook("order_frozen"))
    lines = str(report).splitlines()
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("different: ")
    page = report._repr_html_()
    assert "order_frozen" in page
    assert re.search(r"<script|<[^>]*on\w+=", page) is None
    causes = (parity.Cause("<a>", "b & c", "`<d>`", "e"),) * 4
    many = parity.Report("different", "it <is>.", 1, "v", causes, ("n",) * 20)
    assert len(str(many).splitlines()) <= 12
    assert "<a>" not in many._repr_html_()
    assert html.escape("b & c") in many._repr_html_()


FILE = """
import sys
sys.path.insert(0, {tests!r})
import parity_patients as patients
setup = patients.setup("regression")
train = patients.textbook({fault!r})
"""


def run_command(path, *options):
    return subprocess.run(
        [sys.executable, "-m", "utils.parity", str(path), *options],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
        timeout=120,
        check=False,
    )


def test_command_line(tmp_path):
    healthy = tmp_path / "healthy.py"
    healthy.write_text(FILE.format(tests=str(Path(__file__).parent), fault=""))
    done = run_command(healthy)
    assert (done.returncode, done.stdout.split(":")[0]) == (0, "identical"), done.stderr


def test_command_on_a_notebook(tmp_path, capsys):
    source = FILE.format(tests=str(Path(__file__).parent), fault="loss_summed")
    lines = ["%matplotlib inline\n", *source.splitlines(keepends=True)]
    cells = [{"cell_type": "markdown", "source": "words"}, {"cell_type": "code", "source": lines}]
    sick = tmp_path / "sick.ipynb"
    sick.write_text(json.dumps({"cells": cells}))
    assert parity.main([str(sick)]) == 1
    assert "loss_summed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [("setup = 1", "defines no train"), ("1 +", "SyntaxError"), ("raise ValueError('x')", "x")],
)
def test_command_on_a_file_that_defines_nothing(text, words, tmp_path, capsys):
    path = tmp_path / "empty.py"
    path.write_text(text)
    assert parity.main([str(path)]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "Traceback" not in told


def test_command_line_leaves_what_cannot_be_interrupted(tmp_path):
    stuck = tmp_path / "stuck.py"
    stuck.write_text(
        FILE.format(tests=str(Path(__file__).parent), fault="")
        + """
import tensorflow as tf
def train(model, optimizer, loss, dataset, epochs):
    @tf.function
    def everything():
        x = tf.constant(0)
        while x > -1:
            x = (x + 1) % 10
        return x
    everything()
"""
    )
    done = run_command(stuck, "--time-limit", "2")
    assert done.returncode == 1
    assert done.stdout.startswith("broken: The loop was stopped after 2 s")


# --- when `fit` is the odd one -------------------------------------------------------------------


@pytest.mark.parametrize("kind", patients.KINDS)
def test_fit_makes_a_phantom_step_on_a_dataset_of_unknown_length(kind):
    usual = patients.setup(
        kind, optimizer=lambda: keras.optimizers.AdamW(0.01, weight_decay=0.1), dropout=True
    )

    def dataset():
        return usual.build_dataset().unbatch().shuffle(50).batch(patients.BATCH)

    setup = parity.Setup(**{**vars(usual), "build_dataset": dataset})

    def train(model, optimizer, loss, dataset, epochs):
        for _ in range(epochs):
            for x, y in dataset:
                with tf.GradientTape() as tape:
                    prediction = model(x, training=True)
                    value = loss(aligned(y, prediction), prediction)
                variables = model.trainable_variables
                optimizer.apply(tape.gradient(value, variables), variables)

    report = parity.compare(setup, train)
    assert [cause.name for cause in report.causes] == ["phantom_step_missing"]
    assert report.first_step == 5

    def told():
        return dataset().apply(tf.data.experimental.assert_cardinality(4))

    def train_told(model, optimizer, loss, dataset, epochs):
        for epoch in range(epochs):
            if epoch:
                iter(dataset)
            train(model, optimizer, loss, dataset, 1)

    known = parity.Setup(**{**vars(setup), "build_dataset": told})
    assert parity.compare(known, train_told).equal


def test_a_set_up_that_the_reference_loop_cannot_train_is_not_diagnosed():
    def build_model():
        x = keras.Input((6,))
        return keras.Model(x, {"a": keras.layers.Dense(1)(x), "b": keras.layers.Dense(1)(x)})

    def dataset():
        x, y = patients.data("regression")
        return tf.data.Dataset.from_tensor_slices((x, {"a": y, "b": -y})).batch(12)

    setup = parity.Setup(
        build_model,
        lambda: keras.optimizers.SGD(0.01),
        {"a": "mse", "b": "mse"},
        dataset,
    )

    def train(factor):
        def loop(model, optimizer, loss, dataset, epochs):
            model.compile(optimizer, loss)
            for _ in range(epochs):
                for x, y in dataset:
                    with tf.GradientTape() as tape:
                        value = factor * model.compute_loss(x, y, model(x, training=True))
                    variables = model.trainable_variables
                    optimizer.apply(tape.gradient(value, variables), variables)

        return loop

    assert parity.compare(setup, train(1.0)).equal
    report = parity.compare(setup, train(2.0))
    assert report.verdict == "different"
    assert report.causes == ()
    assert "No cause was looked for" in str(report)
