"""Features learnt from links, labels or dissimilarities, before clustering.

Reference: Denoeux (2021), NN-EVCLUS, section 3.3 (metric adaptation) and section 4.2
(dissimilarity data).

========================  ==================  ===================================================
what is known             transformer         what it does
========================  ==================  ===================================================
must- and cannot-links    `PCCA`              linear map: must-links shorter than 1, others longer
must- and cannot-links    `KernelPCCA`        the same by a curved map
must- and cannot-links    `LSI`               metric: cannot-links far apart in sum
must- and cannot-links    `DMLEig`            metric: the nearest cannot-link far apart
labels of some objects    `KernelFDA`         separates the classes by a curved map
labels of some objects    `LFDA`              linear map that lets a class have several parts
dissimilarities           `DissimilarityPCA`  principal components of the dissimilarity rows
nothing but the rows      `GeodesicMap`       distances along the data, for clusters of any shape
nothing but the rows      `NeighbourLayout`   neighbours together, strangers apart, in few columns
a table with gaps, names  `TableEncoder`      categories, dates, missing values as like numbers
========================  ==================  ===================================================

The linear Fisher discriminants are scikit-learn's LinearDiscriminantAnalysis, fitted to the
labelled objects. All are scikit-learn transformers; a label of -1 is not known.
"""

from evdist.features.dissimilarity import DissimilarityPCA
from evdist.features.fisher import LFDA, KernelFDA
from evdist.features.geodesic import GeodesicMap
from evdist.features.layout import NeighbourLayout
from evdist.features.metric import LSI, DMLEig
from evdist.features.pcca import PCCA, KernelPCCA
from evdist.features.table import TableEncoder

__all__ = [
    "LFDA",
    "LSI",
    "PCCA",
    "DMLEig",
    "DissimilarityPCA",
    "GeodesicMap",
    "KernelFDA",
    "KernelPCCA",
    "NeighbourLayout",
]
__all__ += ["TableEncoder"]
