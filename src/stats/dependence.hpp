// How far samples that follow each other hang together, and what that costs: n samples tell as much about their middle
// as n / variance_inflation independent ones.
#pragma once

#include <span>

namespace syslab::stats {

// Σ (x_i − x̄)(x_{i−1} − x̄) / Σ (x_i − x̄)²; 0 with fewer than three samples or without any spread.
double lag1_autocorrelation(std::span<const double> in_time_order);

// The same plus (1 + 3ρ) / n, which undoes its bias to first order (Marriott & Pope 1954; Kendall 1954): the mean that
// is subtracted follows the samples, so short series look less autocorrelated than they are. Less than 1.
double corrected_lag1_autocorrelation(std::span<const double> in_time_order);

// √ of this widens an interval; at least 1. With ρ the corrected lag-1 autocorrelation it is (1 + ρ) / (1 − ρ), which
// is the whole story for an AR(1) process. Where ρ exceeds 1/√n it is also at least the sum of all autocorrelations,
// cut where Geyer's initial monotone sequence (1992) cuts it and corrected for the subtracted mean: slow wander under
// fast noise has a small ρ and a long memory.
double variance_inflation(std::span<const double> in_time_order);

}  // namespace syslab::stats
