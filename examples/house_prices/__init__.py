"""A linear model of the logarithm of house prices, judged by five folds, as D2L does it."""
