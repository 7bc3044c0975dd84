// How long a collective operation takes, by its bytes: as it was measured, and as the law T = α + bytes / w.
//
//   const TransferCurve curve({{1 << 20, Seconds(28e-6)}, {1 << 24, Seconds(88e-6)}, {1 << 30, Seconds(3.29e-3)}});
//   curve.time(100'000'000);
//
// The curve is for schedules, the law for closed formulas (planning/uniform_model.hpp): on the machines that were
// measured the law is a few percent off, which is more than schedules differ by.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/text/units.hpp"

namespace syslab::parallel {

struct TransferPoint {
  std::int64_t bytes = 0;
  Seconds time{};
};

// T(bytes) = overhead + bytes / bytes_per_second.
struct AffineTransfer {
  Seconds overhead{};
  double bytes_per_second = 0;

  Seconds time(double bytes) const { return overhead + Seconds(bytes / bytes_per_second); }
};

// The law nearest to the points in relative error, (T − t)/t, by least squares: a microsecond off counts for more where
// the whole takes ten than where it takes a thousand. No overhead is below zero. Error(usage) for fewer than two
// different sizes or times that do not grow with the bytes, for which there is no such law.
AffineTransfer fit_affine(std::span<const TransferPoint> points);

class TransferCurve {
 public:
  // In any order. Error(usage) for no point, sizes below 1 or given twice, and times that are not positive.
  explicit TransferCurve(std::vector<TransferPoint> points);

  const std::vector<TransferPoint>& points() const { return points_; }  // by size

  // Straight between points; the smallest size's time below it; in proportion to bytes beyond the largest (the slope
  // between two measured points is mostly their noise).
  Seconds time(std::int64_t bytes) const;

  // The best that time() ever gives, in bytes a second: no number of bytes takes less than bytes / this.
  double best_bytes_per_second() const;

 private:
  std::vector<TransferPoint> points_;
};

}  // namespace syslab::parallel
