// What comparing adds up, element by element and then part by part: the same arithmetic on the host and in the kernel
// that compares on a GPU, so that both say the same of the same numbers, in whatever parts they are looked at.
#pragma once

#include <cstdint>
#include <limits>

namespace syslab::check {

struct Tally {
  static constexpr int kRank = 4;
  std::int64_t compared = 0, wrong = 0, unwritten = 0;
  std::int64_t worst = -1;  // row-major index of the largest error / bound, the first of equals; -1: nothing compared
  double worst_ratio = 0, max_error = 0;
  std::int64_t first[kRank] = {}, last[kRank] = {};  // the box of wrong elements, where there are any

  static constexpr double error_of(double found, double expected) {
    if (found != found) return std::numeric_limits<double>::infinity();
    if (found == expected) return 0;  // equal infinities as well
    return found < expected ? expected - found : found - expected;
  }
  static constexpr double ratio_of(double error, double bound) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (error == 0) return 0;
    // A bound that is NaN or infinite says nothing of the element, so it allows nothing.
    if (!(error < kInfinity) || !(bound > 0) || !(bound < kInfinity)) return kInfinity;
    return error / bound;
  }

  // `sizes`: the shape. `poisoned`: the element still holds what nobody has written over. A NaN in `expected` is not
  // asked for.
  constexpr void add(std::int64_t index, double found, double expected, double bound, bool poisoned,
                     const std::int64_t* sizes, int rank) {
    if (expected != expected) return;
    ++compared;
    if (poisoned) ++unwritten;
    const double error = error_of(found, expected), ratio = ratio_of(error, bound);
    if (ratio > 1) {
      std::int64_t where[kRank] = {};
      std::int64_t rest = index;
      for (int dim = rank - 1; dim >= 0; --dim) {
        where[dim] = rest % sizes[dim];
        rest /= sizes[dim];
      }
      widen(where, where);
      ++wrong;
    }
    if (error > max_error) max_error = error;
    if (worst < 0 || ratio > worst_ratio || (ratio == worst_ratio && index < worst)) {
      worst = index;
      worst_ratio = ratio;
    }
  }

  constexpr void merge(const Tally& other) {
    compared += other.compared;
    unwritten += other.unwritten;
    if (other.wrong > 0) widen(other.first, other.last);
    wrong += other.wrong;
    if (other.max_error > max_error) max_error = other.max_error;
    if (other.worst < 0) return;
    if (worst < 0 || other.worst_ratio > worst_ratio || (other.worst_ratio == worst_ratio && other.worst < worst)) {
      worst = other.worst;
      worst_ratio = other.worst_ratio;
    }
  }

 private:
  constexpr void widen(const std::int64_t* low, const std::int64_t* high) {  // before `wrong` counts what is in it
    for (int dim = 0; dim < kRank; ++dim) {
      if (wrong == 0 || low[dim] < first[dim]) first[dim] = low[dim];
      if (wrong == 0 || high[dim] > last[dim]) last[dim] = high[dim];
    }
  }
};

}  // namespace syslab::check
