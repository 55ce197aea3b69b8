"""Hand-written Numba loops for the paper's mixture, d = 1, one sample per iteration."""

import math

import numba
import numpy as np

OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy"}


@numba.njit(**OPTIONS)
def sem(y, index, gamma, weights, means, s1, s2, delta, epsilon):
    n_components = len(weights)
    r = np.empty(n_components)
    for k in range(len(index)):
        i, g = index[k], gamma[k]
        total = 0.0
        for m in range(n_components):
            r[m] = weights[m] * math.exp(-0.5 * (y[i] - means[m]) ** 2)
            total += r[m]
        for m in range(n_components):
            a = r[m] / total
            s1[m] += g * (a - s1[m])
            s2[m] += g * (a * y[i] - s2[m])
        for m in range(n_components):
            weights[m] = (s1[m] + epsilon) / (1 + epsilon * n_components)
            means[m] = s2[m] / (s1[m] + delta)


@numba.njit(**OPTIONS)
def iem(y, index, weights, means, s1, s2, memory, delta, epsilon):
    n, n_components = memory.shape
    r = np.empty(n_components)
    for k in range(len(index)):
        i = index[k]
        total = 0.0
        for m in range(n_components):
            r[m] = weights[m] * math.exp(-0.5 * (y[i] - means[m]) ** 2)
            total += r[m]
        for m in range(n_components):
            a = r[m] / total
            change = (a - memory[i, m]) / n
            memory[i, m] = a
            s1[m] += change
            s2[m] += change * y[i]
        for m in range(n_components):
            weights[m] = (s1[m] + epsilon) / (1 + epsilon * n_components)
            means[m] = s2[m] / (s1[m] + delta)


@numba.njit(**OPTIONS)
def sem_vr(y, index, g, anchor_weights, anchor_means, c1, c2, weights, means, s1, s2, delta, epsilon):
    n_components = len(weights)
    r, q = np.empty(n_components), np.empty(n_components)
    for k in range(len(index)):
        i = index[k]
        total = total_anchor = 0.0
        for m in range(n_components):
            r[m] = weights[m] * math.exp(-0.5 * (y[i] - means[m]) ** 2)
            total += r[m]
            q[m] = anchor_weights[m] * math.exp(-0.5 * (y[i] - anchor_means[m]) ** 2)
            total_anchor += q[m]
        for m in range(n_components):
            a = r[m] / total - q[m] / total_anchor
            s1[m] += g * (c1[m] + a - s1[m])
            s2[m] += g * (c2[m] + a * y[i] - s2[m])
        for m in range(n_components):
            weights[m] = (s1[m] + epsilon) / (1 + epsilon * n_components)
            means[m] = s2[m] / (s1[m] + delta)


@numba.njit(**OPTIONS)
def fiem(y, index_i, index_j, g, weights, means, s1, s2, c1, c2, memory, delta, epsilon):
    n, n_components = memory.shape
    ri, rj = np.empty(n_components), np.empty(n_components)
    for k in range(len(index_i)):
        i, j = index_i[k], index_j[k]
        total_i = total_j = 0.0
        for m in range(n_components):
            ri[m] = weights[m] * math.exp(-0.5 * (y[i] - means[m]) ** 2)
            total_i += ri[m]
            rj[m] = weights[m] * math.exp(-0.5 * (y[j] - means[m]) ** 2)
            total_j += rj[m]
        for m in range(n_components):
            a = ri[m] / total_i - memory[i, m]
            s1[m] += g * (c1[m] + a - s1[m])
            s2[m] += g * (c2[m] + a * y[i] - s2[m])
        for m in range(n_components):
            a = rj[m] / total_j
            change = (a - memory[j, m]) / n
            memory[j, m] = a
            c1[m] += change
            c2[m] += change * y[j]
        for m in range(n_components):
            weights[m] = (s1[m] + epsilon) / (1 + epsilon * n_components)
            means[m] = s2[m] / (s1[m] + delta)
