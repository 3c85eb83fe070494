"""Draw docs/images/partition.png: three groups that overlap and four objects far away, by ECM."""

from pathlib import Path

import numpy as np

from evdist import ECM, plot

rng = np.random.default_rng(4)
centres = np.array([[0, 0], [4.6, 0], [2.3, 4.1]])
far = [[-4, 7], [9.5, 6.5], [9, -4], [-5, -3.5]]
X = np.vstack([*(rng.normal(size=(120, 2)) + centre for centre in centres), far])
model = ECM(3, focal_sets="pairs", alpha=0.6, delta=4.5, random_state=0).fit(X)
ax = plot.approximations(model.credal_partition_, X)
ax.set(xlabel="", ylabel="", title="")
Path(__file__).with_suffix(".png").write_bytes(plot.to_png(ax))
