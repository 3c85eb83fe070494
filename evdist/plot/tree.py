"""The tree of clusters: which become one when fewer are wanted."""

from __future__ import annotations

from matplotlib.axes import Axes
from scipy.cluster import hierarchy

from evdist.partition import CredalPartition
from evdist.partition.merge import ClusterTree
from evdist.plot.style import INK, new_axes, plain_frame


def tree(partition: CredalPartition | ClusterTree, *, ax: Axes | None = None) -> Axes:
    """Which clusters are hard to tell apart: the lower two branches meet, the harder.

    Parameters
    ----------
    partition : CredalPartition of at least two clusters, or its ``tree()``
        The partition whose clusters are merged.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import ECM, plot
    >>> X, _ = make_blobs(200, centers=4, random_state=0)
    >>> ax = plot.tree(ECM(4, random_state=0).fit(X).credal_partition_)
    """
    found = partition if isinstance(partition, ClusterTree) else partition.tree()
    if found.n_clusters < 2:
        raise ValueError("A tree needs at least two clusters, got one.")
    drawn = hierarchy.dendrogram(found.linkage, no_plot=True)
    ax = new_axes(ax)
    for across, up in zip(drawn["icoord"], drawn["dcoord"], strict=True):
        ax.plot(across, up, color=INK, lw=1.4, gid="merge")
    names = [str(k) for k in drawn["leaves"]]
    small = len(names) > 25
    ax.set_xticks([10.0 * j + 5 for j in range(len(names))], names, fontsize=6 if small else 9,
                  rotation=90 if small else 0)  # fmt: skip
    ax.set(xlabel="cluster", ylabel="told apart", title="Which clusters become one")
    ax.set_ylim(0, 1.05)
    plain_frame(ax)
    return ax
