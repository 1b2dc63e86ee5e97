"""Logistic regression with a penalty on the squares of the weights, by Newton's method. Needs NumPy."""
import numpy


def fit(features, labels, penalty, weights, steps=60):
    """The weights of the features, the constant last. The constant has no penalty.

    features: [samples, features]; labels: 0 or 1; weights: what each sample counts.
    """
    extended = numpy.hstack([features, numpy.ones((len(features), 1))])
    ridge = penalty * numpy.eye(extended.shape[1])
    ridge[-1, -1] = 1e-6
    result = numpy.zeros(extended.shape[1])
    for _ in range(steps):
        likelihood = 1 / (1 + numpy.exp(-numpy.clip(extended @ result, -30, 30)))
        gradient = extended.T @ (weights * (likelihood - labels)) + ridge @ result
        curvature = (extended * (weights * likelihood * (1 - likelihood))[:, None]).T @ extended + ridge
        step = numpy.linalg.solve(curvature, gradient)
        result -= step
        if numpy.abs(step).max() < 1e-6:
            break
    return result
