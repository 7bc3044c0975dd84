// The mean of the middle half: as good as the mean where noise is normal (its variance is 1.2 times the mean's), and
// far better where now and then a value is far off, as when a neighbour on the processor cuts into a burst.
#pragma once

#include <span>

namespace syslab::stats {

// Mean of what is left when the smallest and the largest quarter (⌊n/4⌋ values each) are put aside; of fewer than four
// values the mean of all. Of values that lie symmetrically about something it estimates that, unbiased. NaN when empty.
double midmean(std::span<const double> values);

// Variance that independent values would need for their plain mean to vary as their midmean does, so that the midmean
// of n varies by this / n: n times Tukey and McLaughlin's (1963) squared standard error, from values winsorised at the
// same quarters. The sample variance where n < 4. NaN with fewer than two values.
double midmean_variance(std::span<const double> values);

}  // namespace syslab::stats
