"""Groups: counts, sums, means, minima and maxima, in the total model and inside recursion, with their candidates."""
