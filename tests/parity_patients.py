"""Set-ups and training loops for the tests of `utils.parity`: healthy ones, and one a fault.

Three authors write the loops in their own ways: `textbook` (a step function, eager or compiled),
`graph_epoch` (a whole epoch in one `tf.function`) and `by_hand` (NumPy averages, no Keras metric).
"""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from utils import parity

ROWS, BATCH = 46, 12
KINDS = ("regression", "classifier", "embedding")


def _rng(kind):
    return np.random.default_rng(KINDS.index(kind))


def data(kind, *, logits=False, weights=False, rows=ROWS):
    """Inputs, labels of shape (rows,), and sample weights if asked for."""
    rng = _rng(kind)
    if kind == "embedding":
        x = rng.integers(0, 20, (rows, 2)).astype("int32")
        y = (np.log1p(x[:, 0]) - 0.1 * x[:, 1] + 0.1 * rng.normal(size=rows)).astype("float32")
    else:
        x = rng.normal(size=(rows, 6)).astype("float32")
        y = (x @ rng.normal(size=6) + 0.1 * rng.normal(size=rows)).astype("float32")
    if kind == "classifier":
        y = np.digitize(y, [-1, 1]).astype("int64")
    elif logits:
        y = (y > y.mean()).astype("float32")
    w = rng.uniform(0.2, 3, rows).astype("float32")
    return (x, y, w) if weights else (x, y)


def model(kind, *, dropout=False, l2=0.0, logits=True):
    """A small model of one kind; the classifier always has BatchNormalization."""
    layers, penalty = keras.layers, keras.regularizers.L2(l2) if l2 else None
    rest = [layers.Dropout(0.3)] if dropout else []
    if kind == "regression":
        first = layers.Dense(12, "tanh", kernel_regularizer=penalty)
        return keras.Sequential([keras.Input((6,)), first, *rest, layers.Dense(1)])
    if kind == "classifier":
        first = [
            layers.Dense(16, kernel_regularizer=penalty, use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
        ]
        last = layers.Dense(3, activation=None if logits else "softmax")
        return keras.Sequential([keras.Input((6,)), *first, *rest, last])
    ids = keras.Input((2,), dtype="int32")
    vectors = layers.Embedding(20, 6, "he_normal", embeddings_regularizer=penalty)(ids)
    biases = layers.Embedding(20, 1)(ids)
    for layer in rest:
        vectors = layer(vectors)
    dot = layers.Dot(1)([vectors[:, 0], vectors[:, 1]])
    return keras.Model(ids, layers.Add()([dot, biases[:, 0], biases[:, 1]]))


def squares(y, prediction):
    """Squared error written by hand, without a thought for shapes."""
    return tf.reduce_mean(tf.square(y - prediction))


def cross_entropy(y, prediction):
    """Logistic loss written by hand."""
    return tf.reduce_mean(
        tf.maximum(prediction, 0.0) - y * prediction + tf.math.log1p(tf.exp(-tf.abs(prediction)))
    )


def setup(
    kind,
    *,
    optimizer=None,
    logits=False,
    weights=False,
    dropout=False,
    l2=0.0,
    shuffled=False,
    callbacks=None,
    batch=BATCH,
    rows=ROWS,
    loss=None,
    epochs=3,
    metrics=(),
):
    """A set-up of one kind, with what the fault under test needs."""
    arrays = data(kind, logits=logits, weights=weights, rows=rows)

    def dataset():
        rows = tf.data.Dataset.from_tensor_slices(arrays)
        return (rows.shuffle(ROWS) if shuffled else rows).batch(batch)

    if loss is None and kind == "classifier":
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    elif loss is None and logits:
        loss = keras.losses.BinaryCrossentropy(from_logits=True)
    elif loss is None:
        loss = keras.losses.MeanSquaredError() if weights else squares
    return parity.Setup(
        lambda: model(kind, dropout=dropout, l2=l2),
        optimizer or OPTIMIZERS[kind],
        loss,
        dataset,
        epochs=epochs,
        metrics=metrics,
        build_callbacks=callbacks,
    )


OPTIMIZERS = {
    "regression": lambda: keras.optimizers.SGD(0.05, momentum=0.9),
    "classifier": lambda: keras.optimizers.Adam(0.01),
    "embedding": lambda: keras.optimizers.RMSprop(0.01),
}


def decay(kind):
    """An optimizer whose learning rate falls with every step."""
    rate = keras.optimizers.schedules.ExponentialDecay(0.05, 1, 0.9)
    return lambda: {
        "regression": keras.optimizers.SGD,
        "classifier": keras.optimizers.Adam,
        "embedding": keras.optimizers.RMSprop,
    }[kind](rate)


def clipped(kind):
    """An optimizer that clips, each kind in its own way."""
    return lambda: {
        "regression": lambda: keras.optimizers.SGD(0.05, clipnorm=0.1),
        "classifier": lambda: keras.optimizers.Adam(0.01, global_clipnorm=0.05),
        "embedding": lambda: keras.optimizers.SGD(0.05, clipvalue=0.01),
    }[kind]()


def halving(epoch, rate):
    """A learning rate for `LearningRateScheduler`."""
    return 0.02 * 0.5**epoch


NEEDS = {
    "label_rank_broadcast": {},
    "training_flag_missing": {"dropout": True},
    "regularization_missing": {"l2": 0.01},
    "loss_summed": {},
    "logits_mismatch": {"logits": True},
    "sample_weight_ignored": {"weights": True},
    "schedule_ignored": {"optimizer": decay},
    "epoch_mean_unweighted": {},
    "metric_not_reset": {},
    "last_batch_dropped": {},
    "order_frozen": {"shuffled": True},
    "order_not_shuffled": {"shuffled": True},
    "shuffle_pass_differs": {"shuffled": True},
    "initial_weights_differ": {},
    "optimizer_state_reused": {"optimizer": lambda kind: lambda: keras.optimizers.Adam(0.01)},
    "variables_left_out": {},
    "clipping_missing": {"optimizer": clipped},
    "gradients_applied_twice": {},
    "validation_updates_weights": {},
}
"""What a set-up must have for a fault to show."""


def setup_for(fault, kind, **more):
    """The set-up of one kind on which a fault shows."""
    needs = {k: v(kind) if k == "optimizer" else v for k, v in NEEDS[fault].items()}
    if fault == "label_rank_broadcast" and kind == "classifier":
        # Its labels have no partner of shape (N, 1): a yes-or-no classifier does.
        kind, needs = "regression", {"logits": True, "dropout": True, "loss": cross_entropy}
    return setup(kind, **{**needs, **more})


def textbook(fault="", *, compiled=True):
    """The loop of the tutorials: a step function, a loop over epochs, a loop over batches."""

    def train(model, optimizer, loss, dataset, epochs):
        if fault == "initial_weights_differ":
            for v in model.trainable_variables:
                v.assign(keras.random.normal(v.shape, stddev=0.1, seed=7))
        if fault == "schedule_ignored":
            optimizer = type(optimizer)(learning_rate=0.05)
        if fault == "clipping_missing":
            optimizer = type(optimizer)(learning_rate=float(optimizer.learning_rate))
        variables = model.trainable_variables
        trained = variables[1:] if fault == "variables_left_out" else variables
        optimizer.build(variables)

        def objective(y, prediction, w):
            if fault == "label_rank_broadcast":
                return loss(y, prediction)
            if prediction.shape.rank == 2 and prediction.shape[-1] == 1:
                y = tf.reshape(y, (-1, 1))
            if fault == "logits_mismatch":
                wrong = type(loss)(from_logits=False)
                return wrong(y, prediction)
            if w is not None and fault != "sample_weight_ignored":
                return loss(y, prediction, sample_weight=w)
            value = loss(y, prediction)
            if fault == "loss_summed":
                value = value * tf.cast(tf.shape(y)[0], value.dtype)
            return value

        def step(x, y, w=None):
            with tf.GradientTape() as tape:
                prediction = model(x, training=fault != "training_flag_missing")
                value = objective(y, prediction, w)
                if model.losses and fault != "regularization_missing":
                    value += tf.add_n(model.losses)
            gradients = tape.gradient(value, trained)
            optimizer.apply_gradients(zip(gradients, trained))
            if fault == "gradients_applied_twice":
                optimizer.apply_gradients(zip(gradients, trained))
            return value

        if compiled:
            step = tf.function(step, reduce_retracing=True)
        if fault == "optimizer_state_reused":
            before = model.get_weights()
            step(*next(iter(dataset)))
            model.set_weights(before)
        source = dataset
        if fault == "order_frozen":
            source = list(dataset)
        if fault == "order_not_shuffled":
            source = UNSHUFFLED[0]
        mean, history = keras.metrics.Mean(), []
        for epoch in range(epochs):
            if epoch and fault not in ("order_frozen", "shuffle_pass_differs"):
                iter(dataset)
            if fault != "metric_not_reset":
                mean.reset_state()
            for batch in source:
                if fault == "last_batch_dropped" and len(batch[1]) < BATCH:
                    continue
                value = step(*batch)
                weight = None if fault == "epoch_mean_unweighted" else len(batch[1])
                mean.update_state(value, sample_weight=weight)
            history.append(float(mean.result()))
            if fault == "validation_updates_weights":
                for batch in dataset:
                    step(*batch)
        return {"loss": history}

    return train


UNSHUFFLED: list = []
"""The batches in file order, for loops that take the data from somewhere else."""


def graph_epoch(fault="", *, compiled=True):
    """A whole epoch in one graph, with its own accumulators and `optimizer.apply`."""

    def train(model, optimizer, loss, dataset, epochs):
        if fault == "initial_weights_differ":
            model.set_weights([0.9 * w for w in model.get_weights()])
        if fault == "schedule_ignored":
            config = optimizer.get_config()
            optimizer = type(optimizer).from_config({**config, "learning_rate": 0.05})
        if fault == "clipping_missing":
            optimizer.clipnorm = optimizer.clipvalue = optimizer.global_clipnorm = None
        theta = list(model.trainable_variables)
        optimizer.build(theta)
        if fault == "variables_left_out":
            theta = theta[:-1]
        if fault == "optimizer_state_reused":
            optimizer.apply([tf.zeros_like(v) for v in theta])
        total = tf.Variable(0.0)
        seen = tf.Variable(0.0)

        def measure(y, z, w):
            if fault != "label_rank_broadcast" and z.shape[-1] == 1:
                z = tf.squeeze(z, -1)
            if fault == "logits_mismatch":
                # Times one, or Keras finds the logits before the softmax and uses them.
                z = 1.0 * (tf.nn.softmax(z) if z.shape.rank == 2 else tf.nn.sigmoid(z))
            if z.shape.rank == 1 and hasattr(loss, "reduction"):
                y, z = y[:, None], z[:, None]
            use = w is not None and fault != "sample_weight_ignored"
            out = loss(y, z, w) if use else loss(y, z)
            if fault == "loss_summed":
                out *= tf.cast(tf.size(y), out.dtype)
            return out

        def update(x, y, w):
            with tf.GradientTape() as tape:
                z = model(x) if fault == "training_flag_missing" else model(x, training=True)
                value = measure(y, z, w)
                for penalty in model.losses:
                    if fault != "regularization_missing":
                        value += penalty
            optimizer.apply(tape.gradient(value, theta), theta)
            return value

        def epoch_of(data):
            for batch in data:
                x, y = batch[0], batch[1]
                w = batch[2] if len(batch) == 3 else None
                if fault == "last_batch_dropped" and tf.shape(y)[0] < BATCH:
                    continue
                value = update(x, y, w)
                if fault == "gradients_applied_twice":
                    update(x, y, w)
                n = tf.constant(1.0)
                if fault != "epoch_mean_unweighted":
                    n = tf.cast(tf.shape(y)[0], tf.float32)
                total.assign_add(value * n)
                seen.assign_add(n)

        def look_at(data):
            for batch in data:
                update(batch[0], batch[1], None)

        if compiled:
            epoch_of, look_at = tf.function(epoch_of), tf.function(look_at)
        losses = []
        data = dataset.cache() if fault == "order_frozen" else dataset
        if fault == "order_not_shuffled":
            pieces = zip(*UNSHUFFLED[0])
            data = tf.data.Dataset.from_tensor_slices(
                tuple(tf.concat(piece, 0) for piece in pieces)
            ).batch(BATCH)
        if fault == "shuffle_pass_differs":
            next(iter(dataset))
        for epoch in range(epochs):
            if epoch > 0 and fault not in ("order_frozen", "shuffle_pass_differs"):
                iter(dataset)
            if fault != "metric_not_reset" or epoch == 0:
                total.assign(0.0)
                seen.assign(0.0)
            epoch_of(data)
            losses.append((total / seen).numpy())
            if fault == "validation_updates_weights":
                look_at(dataset)
        return dict(loss=losses)

    return train


def by_hand(fault="", *, compiled=False):
    """A loop by someone who trusts NumPy: lists of losses, positions counted by hand."""

    def train(model, opt, criterion, ds, n_epochs):
        weights = model.trainable_weights
        if fault == "initial_weights_differ":
            for w in weights:
                w.assign(tf.ones_like(w) * 0.1)
        if fault in ("schedule_ignored", "clipping_missing"):
            rate = 0.05 if fault == "schedule_ignored" else float(opt.learning_rate)
            opt = {"SGD": keras.optimizers.SGD, "Adam": keras.optimizers.Adam}.get(
                type(opt).__name__, keras.optimizers.RMSprop
            )(rate)
        mine = weights[:1] if fault == "variables_left_out" else weights

        def forward(x, y, s):
            out = model(x) if fault == "training_flag_missing" else model(x, training=True)
            if out.shape[-1] == 1 and fault != "label_rank_broadcast":
                y = y[:, tf.newaxis]
            if fault == "logits_mismatch":
                config = {**criterion.get_config(), "from_logits": False}
                return type(criterion).from_config(config)(y, out)
            kw = {}
            if s is not None and fault != "sample_weight_ignored":
                kw["sample_weight"] = s
            return criterion(y, out, **kw)

        def learn(x, y, s=None):
            with tf.GradientTape() as g:
                j = forward(x, y, s)
                if fault == "loss_summed":
                    j = j * tf.cast(tf.size(y), j.dtype)
                if fault != "regularization_missing":
                    j = j + sum(model.losses)
            grads = g.gradient(j, mine)
            opt.apply_gradients(list(zip(grads, mine)))
            return j

        if compiled:
            learn = tf.function(learn, autograph=False)
        if fault == "optimizer_state_reused":
            keep = [w.numpy() for w in model.weights]
            for b in ds:
                learn(*b)
            for w, k in zip(model.weights, keep):
                w.assign(k)
        log, everything, sizes, batches = [], [], [], []
        for i in range(n_epochs):
            if fault == "order_frozen":
                batches = batches if i else list(ds)
            elif fault == "order_not_shuffled":
                batches = UNSHUFFLED[0]
            elif fault == "shuffle_pass_differs":
                batches = list(ds)
            else:
                if i > 0:
                    ds.__iter__()
                batches = list(ds)
            if fault == "last_batch_dropped":
                batches = batches[:-1]
            if fault != "metric_not_reset":
                everything, sizes = [], []
            for b in batches:
                everything.append(float(learn(*b)))
                if fault == "gradients_applied_twice":
                    learn(*b)
                sizes.append(b[1].shape[0])
            if fault == "epoch_mean_unweighted":
                log.append(np.mean(everything))
            else:
                log.append(np.average(everything, weights=sizes))
            if fault == "validation_updates_weights":
                for b in ds:
                    learn(*b)
        return {"loss": log}

    return train


AUTHORS = {"textbook": textbook, "graph_epoch": graph_epoch, "by_hand": by_hand}


def examine(fault, kind, author, compiled, **more):
    """Compare a loop with a fault (or none, with the set-up of one) with `fit`."""
    made = setup_for(fault, kind, **more)
    arrays = data(
        "regression" if fault == "label_rank_broadcast" and kind == "classifier" else kind,
        weights=NEEDS[fault].get("weights", False),
    )
    UNSHUFFLED[:] = [list(tf.data.Dataset.from_tensor_slices(arrays).batch(BATCH))]
    return parity.compare(made, AUTHORS[author](fault, compiled=compiled))
