"""A linear model of the logarithm of house prices, evaluated by five folds, as in D2L."""
