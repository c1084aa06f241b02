"""What the analyst runs: one model over two hospitals' columns, and a new patient a day later.

The programs name data sets of the hospitals and no path. They run on workers and on a simulator
alike.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from mplang_tables import from_tensor, to_tensor

import mplang_core as mp

PATIENTS, TRAINING = 569, 455
EPOCHS, RATE = 20, 1.0
SECRET_TO_ALL = "SP0"
DEVICES = {
    "PA": {"kind": "PPU", "members": ["hospital_a"]},
    "PB": {"kind": "PPU", "members": ["hospital_b"]},
    SECRET_TO_ALL: {"kind": "SPU", "members": ["hospital_a", "hospital_b", "university"]},
}

# -- what a hospital runs, in plain JAX


def scale_of(x):
    """Return mean and deviation of the columns of the training patients."""
    return x[:TRAINING].mean(axis=0), x[:TRAINING].std(axis=0)


def scaled(x, scale):
    """Return columns of mean 0 and deviation 1."""
    mean, deviation = scale
    return ((x - mean) / deviation).astype(jnp.float32)


def auc(score, label):
    """Return how often a sick patient is scored above a healthy one (the area under ROC)."""
    above = (score[:, None] > score[None, :]) + 0.5 * (score[:, None] == score[None, :])
    pairs = (label[:, None] == 1) & (label[None, :] == 0)
    return (above * pairs).sum() / pairs.sum()


# -- what they run together, on shares


def epoch(weights, x, y):
    """One step of gradient descent over all training patients."""
    w, b = weights
    error = jax.nn.sigmoid(x @ w + b) - y
    return w - RATE * (x.T @ error) / x.shape[0], b - RATE * error.mean()


def predict(weights, x):
    """Return the probability of a diagnosis."""
    w, b = weights
    return jax.nn.sigmoid(x @ w + b)


# -- the programs


def read(hospital: str, device: str, name: str, rows: int, others: tuple[str, ...] = ("id",)):
    """Return a hospital's table in the order of the patients' numbers, and its measurements."""
    on = mp.device(device)
    table = on(lambda t: t.order_by("id"))(mp.dataset(hospital, name))
    measured = on(lambda t: t.drop(*others))(table)
    return table, on(to_tensor)(measured, rows=rows)


def column(device: str, table: Any, name: str, rows: int) -> Any:
    """Return a column of a table as a vector."""
    found = mp.device(device)(lambda t: t.select(name))(table)
    return mp.device(device)(lambda x: x[:, 0])(mp.device(device)(to_tensor)(found, rows=rows))


def store_scores(ids: Any, scores: Any, name: str) -> None:
    """Leave scores and the patients' numbers in the sink of hospital B."""
    on = mp.device("PB")
    both = on(lambda i, s: jnp.stack([i.astype(jnp.float64), s.astype(jnp.float64)], 1))(
        ids, scores
    )
    table = on(from_tensor)(both, columns=("id", "score"))
    mp.store(on(lambda t: t.mutate(id=t.id.cast("int64")))(table), name)


def train() -> Any:
    """Train on shares; keep the model in shares, and the predictions at hospital B.

    Returns:
        The AUC over the test patients, which is all that the analyst learns.
    """
    _, a = read("hospital_a", "PA", "patients", PATIENTS)
    table, b = read("hospital_b", "PB", "patients", PATIENTS, ("id", "diagnosis"))
    label = column("PB", table, "diagnosis", PATIENTS)
    scale_a, scale_b = mp.device("PA")(scale_of)(a), mp.device("PB")(scale_of)(b)
    a, b = mp.device("PA")(scaled)(a, scale_a), mp.device("PB")(scaled)(b, scale_b)

    together = mp.device(SECRET_TO_ALL)
    x = together(lambda a, b: jnp.hstack([a, b]))(a, b)
    y = mp.seal(mp.device("PB")(lambda y: y[:TRAINING].astype(jnp.float32))(label))
    trained = together(lambda x: x[:TRAINING])(x)
    weights = mp.seal((np.zeros(30, np.float32), np.float32(0)))
    for _ in range(EPOCHS):
        weights = together(epoch)(weights, trained, y)
    scores = mp.reveal(together(lambda w, x: predict(w, x[TRAINING:]))(weights, x), to="PB")

    mp.store(weights, "model")
    mp.store(scale_a, "scale")
    mp.store(scale_b, "scale")
    ids = column("PB", table, "id", PATIENTS)
    store_scores(mp.device("PB")(lambda i: i[TRAINING:])(ids), scores, "predictions")
    return mp.device("PB")(lambda s, y: auc(s, y[TRAINING:]))(scores, label)


def score() -> None:
    """Score the patients who came since, by the model that is stored; hospital B gets it."""
    _, a = read("hospital_a", "PA", "arrivals", 1)
    table, b = read("hospital_b", "PB", "arrivals", 1)
    a = mp.device("PA")(scaled)(a, mp.load("hospital_a", "scale"))
    b = mp.device("PB")(scaled)(b, mp.load("hospital_b", "scale"))
    together = mp.device(SECRET_TO_ALL)
    weights = mp.load(SECRET_TO_ALL, "model")
    found = together(lambda w, a, b: predict(w, jnp.hstack([a, b])))(weights, a, b)
    store_scores(column("PB", table, "id", 1), mp.reveal(found, to="PB"), "arrivals")
