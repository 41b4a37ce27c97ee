"""Distributions, information measures, Bayesian and maximum likelihood inference, confidence intervals."""

from wonderland.probability import exponential_family
from wonderland.probability.cumulative import cdf, incomplete_beta, quantile
from wonderland.probability.discrete_uniform import DiscreteUniform
from wonderland.probability.estimators import Quality, quality, standardised_mean
from wonderland.probability.exponential_family import Family
from wonderland.probability.information import (
    conditional_entropy,
    cross_entropy,
    entropy,
    kl_divergence,
    mutual_information,
    pointwise_mutual_information,
    self_information,
)
from wonderland.probability.intervals import chebyshev_bound, mean_interval, proportion_interval
from wonderland.probability.likelihood import (
    bernoulli_fit,
    gaussian_fit,
    gaussian_prior,
    laplace_prior,
    maximise,
    negative_log_likelihood,
)
from wonderland.probability.monte_carlo import (
    Estimate,
    average,
    expectation,
    generalisation_gap,
    predictive_average,
    sampled_kl,
)
from wonderland.probability.naive_bayes import (
    BernoulliNaiveBayes,
    GaussianNaiveBayes,
    bernoulli_naive_bayes,
    gaussian_naive_bayes,
)
from wonderland.probability.neighbours import neighbour_entropy, neighbour_information
from wonderland.probability.sequential import BetaBinomial, GaussianMean, GaussianWeights
from wonderland.probability.table import JointTable

__all__ = [
    "BernoulliNaiveBayes",
    "BetaBinomial",
    "DiscreteUniform",
    "Estimate",
    "Family",
    "GaussianMean",
    "GaussianNaiveBayes",
    "GaussianWeights",
    "JointTable",
    "Quality",
    "average",
    "bernoulli_fit",
    "bernoulli_naive_bayes",
    "cdf",
    "chebyshev_bound",
    "conditional_entropy",
    "cross_entropy",
    "entropy",
    "expectation",
    "exponential_family",
    "gaussian_fit",
    "gaussian_naive_bayes",
    "gaussian_prior",
    "generalisation_gap",
    "incomplete_beta",
    "kl_divergence",
    "laplace_prior",
    "maximise",
    "mean_interval",
    "mutual_information",
    "negative_log_likelihood",
    "neighbour_entropy",
    "neighbour_information",
    "pointwise_mutual_information",
    "predictive_average",
    "proportion_interval",
    "quality",
    "quantile",
    "sampled_kl",
    "self_information",
    "standardised_mean",
]
