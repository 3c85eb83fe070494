"""Gaussian mixtures: fourteen covariance models, weighted EM, choice by BIC."""

from evdist.mixture.covariance import MODELS
from evdist.mixture.em import EMResult, fit_em, fit_em_many, from_posterior
from evdist.mixture.estimator import GaussianMixture
from evdist.mixture.parameters import Parameters
from evdist.mixture.select import Selection, bic, select_mixture

__all__ = ["MODELS", "EMResult", "GaussianMixture", "Parameters", "Selection", "bic", "fit_em"]
__all__ += ["fit_em_many", "from_posterior", "select_mixture"]
