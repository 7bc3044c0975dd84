#include "planning/transfer_curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"

namespace syslab::parallel {
namespace {

void require_sound(const TransferPoint& point) {
  if (point.bytes >= 1 && point.time.count() > 0 && std::isfinite(point.time.count())) return;
  throw Error(ErrorKind::usage, fmt::format("a transfer of {} bytes in {} s: at least one byte and a time above zero "
                                            "are wanted",
                                            point.bytes, point.time.count()));
}

double seconds_a_byte(const TransferPoint& point) { return point.time.count() / static_cast<double>(point.bytes); }

}  // namespace

AffineTransfer fit_affine(std::span<const TransferPoint> points) {
  // Residual (α + β·b − t)/t = α·x + β·y − 1 with x = 1/t, y = b/t: two normal equations.
  double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0;
  for (const TransferPoint& point : points) {
    require_sound(point);
    const double x = 1 / point.time.count(), y = static_cast<double>(point.bytes) / point.time.count();
    xx += x * x;
    xy += x * y;
    yy += y * y;
    x1 += x;
    y1 += y;
  }
  const double determinant = xx * yy - xy * xy;
  double overhead = (x1 * yy - y1 * xy) / determinant, slope = (y1 * xx - x1 * xy) / determinant;
  if (overhead < 0) {  // the best law without one
    overhead = 0;
    slope = y1 / yy;
  }
  if (points.size() < 2 || !(determinant > 1e-12 * xx * yy) || !(slope > 0)) {
    throw Error(ErrorKind::usage,
                fmt::format("no law T = overhead + bytes / bandwidth through {} measured transfers: two different "
                            "sizes at least are wanted, and times that grow with them",
                            points.size()));
  }
  return {Seconds(overhead), 1 / slope};
}

TransferCurve::TransferCurve(std::vector<TransferPoint> points) : points_(std::move(points)) {
  if (points_.empty()) throw Error(ErrorKind::usage, "no measured transfer: a schedule needs one at least");
  std::ranges::for_each(points_, require_sound);
  std::ranges::sort(points_, {}, &TransferPoint::bytes);
  const auto twice = std::ranges::adjacent_find(points_, {}, &TransferPoint::bytes);
  if (twice != points_.end()) {
    throw Error(ErrorKind::usage, fmt::format("transfers of {} bytes are given twice; one time a size is wanted, their "
                                              "median say",
                                              twice->bytes));
  }
}

Seconds TransferCurve::time(std::int64_t bytes) const {
  const TransferPoint& last = points_.back();
  if (bytes > last.bytes) return Seconds(seconds_a_byte(last) * static_cast<double>(bytes));
  const auto above = std::ranges::lower_bound(points_, bytes, {}, &TransferPoint::bytes);
  if (above == points_.begin()) return above->time;
  const TransferPoint &low = above[-1], &high = *above;
  const double share = static_cast<double>(bytes - low.bytes) / static_cast<double>(high.bytes - low.bytes);
  return low.time + share * (high.time - low.time);
}

double TransferCurve::best_bytes_per_second() const {
  // On a straight segment bytes / time is monotonic: its maximum is at an end point.
  double least = seconds_a_byte(points_.front());
  for (const TransferPoint& point : points_) least = std::min(least, seconds_a_byte(point));
  return 1 / least;
}

}  // namespace syslab::parallel
