"""Compiled passes over a graph: nodes join groups, groups become nodes, and clusters are refined.

Each pass is serial, in the order of the nodes, so its result does not depend on threads. A tie is
the weight of the edges between a node or group and another group; edge weights are at least 1, so a
tie of 0 means no edge. The kernels take and fill arrays; `tie` is zero between calls.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _tie_groups_into(node, indptr, indices, edge_weight, label, count, tie, touched):
    """Add the edges of a node to the `tie` of each group, which is zero for untouched groups.

    `touched` lists `count` groups on entry; returns the number on exit.
    """
    for e in range(indptr[node], indptr[node + 1]):
        group = label[indices[e]]
        if tie[group] == 0:
            touched[count] = group
            count += 1
        tie[group] += edge_weight[e]
    return count


@njit(cache=True, nogil=True)
def move_into(indptr, indices, edge_weight, node_weight, heaviest, rounds, label, tie, weight):
    """Move nodes to the group with room and the largest w^2 / m; if equal, to the smaller id.

    >>> from precompute.coarsening import unweighted
    >>> pairs = unweighted(np.array([0, 1, 2, 3, 4]), np.array([1, 0, 3, 2], np.int32))
    >>> label, (tie, weight) = np.arange(4, dtype=np.int32), np.zeros((4, 2), np.int32).T
    >>> weight[:] = pairs.node_weight
    >>> move_into(*pairs, 2, 3, label, tie, weight)
    >>> label.tolist()
    [1, 1, 3, 3]
    """
    num_nodes = len(indptr) - 1
    touched = np.empty(num_nodes, np.int32)
    for _ in range(rounds):
        moved = 0
        for node in range(num_nodes):
            count = _tie_groups_into(node, indptr, indices, edge_weight, label, 0, tie, touched)
            own, load = label[node], node_weight[node]
            weight[own] -= load
            best, best_rating = own, 0.0
            if weight[own] > 0:
                best_rating = float(tie[own]) * float(tie[own]) / weight[own]
            for i in range(count):
                group = touched[i]
                strength = float(tie[group])
                tie[group] = 0
                if group == own or weight[group] + load > heaviest:
                    continue
                rating = strength * strength / weight[group]
                if rating > best_rating or (rating == best_rating and group < best):
                    best, best_rating = group, rating
            weight[best] += load
            if best != own:
                label[node] = best
                moved += 1
        if moved == 0:
            break


@njit(cache=True, nogil=True)
def join_lone_into(indptr, indices, edge_weight, node_weight, heaviest, label, tie, weight):
    """Join nodes that are alone in their group and whose strongest tie is to the same group.

    >>> from precompute.coarsening import unweighted
    >>> star = unweighted(np.array([0, 2, 3, 4]), np.array([1, 2, 0, 0], np.int32))
    >>> label, (tie, weight) = np.arange(3, dtype=np.int32), np.zeros((3, 2), np.int32).T
    >>> weight[:] = star.node_weight
    >>> join_lone_into(*star, 2, label, tie, weight)
    >>> label.tolist()  # both leaves are tied to the hub
    [0, 1, 1]
    """
    num_nodes = len(indptr) - 1
    touched = np.empty(num_nodes, np.int32)
    open_group = np.full(num_nodes, -1, np.int32)  # group of lone nodes tied to each group
    for node in range(num_nodes):
        own = label[node]
        if weight[own] != node_weight[node]:
            continue
        count = _tie_groups_into(node, indptr, indices, edge_weight, label, 0, tie, touched)
        best, strongest = -1, 0
        for i in range(count):
            group = touched[i]
            strength = tie[group]
            tie[group] = 0
            if strength > strongest or (strength == strongest and group < best):
                best, strongest = group, strength
        if best < 0:
            continue
        other = open_group[best]
        if other >= 0 and weight[other] + weight[own] <= heaviest:
            label[node] = other
            weight[other] += weight[own]
            weight[own] = 0
        else:
            open_group[best] = own


@njit(cache=True, nogil=True)
def number_into(label):
    """Number the groups from 0, in the order of their first nodes.

    >>> label = np.array([3, 1, 3, 0], np.int32)
    >>> number_into(label)
    >>> label.tolist()
    [0, 1, 0, 2]
    """
    number = np.full(len(label), -1, np.int32)
    num_groups = 0
    for node in range(len(label)):
        if number[label[node]] < 0:
            number[label[node]] = num_groups
            num_groups += 1
        label[node] = number[label[node]]


@njit(cache=True, nogil=True)
def list_members_into(label, place, member):
    """List the nodes by group; `place` is the start of each group on entry, its end on exit.

    >>> place, member = np.array([0, 2]), np.empty(3, np.int32)
    >>> list_members_into(np.array([0, 1, 0], np.int32), place, member)
    >>> member.tolist(), place.tolist()
    ([0, 2, 1], [2, 3])
    """
    for node in range(len(label)):
        group = label[node]
        member[place[group]] = node
        place[group] += 1


@njit(cache=True, nogil=True)
def contract_into(
    indptr,
    indices,
    edge_weight,
    label,
    first,
    member,
    coarse_indptr,
    coarse_indices,
    coarse_weight,
):
    """Compute the rows of the graph of groups; the last two arrays have room for all edges.

    >>> from precompute.coarsening import unweighted
    >>> path = unweighted(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], np.int32))
    >>> label, first, member = np.array([0, 0, 1], np.int32), np.array([0, 2, 3]), np.arange(3)
    >>> indptr, (indices, weight) = np.zeros(3, np.int64), np.empty((2, 4), np.int32)
    >>> contract_into(*path[:3], label, first, member.astype(np.int32), indptr, indices, weight)
    >>> indptr.tolist(), indices[:2].tolist()
    ([0, 1, 2], [1, 0])
    """
    num_groups = len(first) - 1
    tie = np.zeros(num_groups, edge_weight.dtype)
    touched = np.empty(num_groups, np.int32)
    at = 0
    for group in range(num_groups):
        count = 0
        for i in range(first[group], first[group + 1]):
            count = _tie_groups_into(
                member[i], indptr, indices, edge_weight, label, count, tie, touched
            )
        for i in range(count):
            other = touched[i]
            if other != group:
                coarse_indices[at] = other
                coarse_weight[at] = tie[other]
                at += 1
            tie[other] = 0
        coarse_indptr[group + 1] = at


@njit(cache=True, nogil=True)
def refine_into(indptr, indices, largest, rounds, cluster, size):
    """Move nodes to the cluster that has most of their edges, if it has room.

    >>> indptr, indices = np.array([0, 2, 4, 6]), np.array([1, 2, 0, 2, 0, 1], np.int32)
    >>> cluster, size = np.array([0, 0, 1], np.int32), np.array([2, 1])  # one node of a triangle
    >>> refine_into(indptr, indices, 3, 1, cluster, size)
    >>> cluster.tolist(), size.tolist()
    ([0, 0, 0], [3, 0])
    """
    tie = np.zeros(len(size), np.int64)
    for _ in range(rounds):
        moved = 0
        for node in range(len(cluster)):
            own, start, stop = cluster[node], indptr[node], indptr[node + 1]
            if start == stop:
                continue
            for e in range(start, stop):
                tie[cluster[indices[e]]] += 1
            best = own
            for e in range(start, stop):
                other = cluster[indices[e]]
                if tie[other] > tie[best] and size[other] < largest:
                    best = other
            for e in range(start, stop):
                tie[cluster[indices[e]]] = 0
            if best != own:
                cluster[node] = best
                size[best] += 1
                size[own] -= 1
                moved += 1
        if moved == 0:
            break
