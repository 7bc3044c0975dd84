// Where a series of medians, one a revision, may have changed its level. A suspicion: values of different days hold
// whatever the machine was on each of them, which no test on the series can take out.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace syslab::stats {

struct ChangePoint {
  std::size_t at = 0;    // the first value of the new level
  double log_ratio = 0;  // mean level after it, less that before it, up to the neighbouring change points
};

// Of logarithms of times. The series is cut in two where the levels differ most for their noise, and each part again
// (binary segmentation), as long as they differ by more than log(1 + least) and by four standard errors. The noise is
// told by the differences of neighbours (their median size over 0.954, of a difference of two normal values), which a
// few changes of level do not touch. Of fewer than six values it is the largest of these differences beside the cut; of
// two values the difference alone decides. In order of place.
std::vector<ChangePoint> change_points(std::span<const double> logs, double least);

}  // namespace syslab::stats
