// What tests do to a step while it is queued: leave out a wait, be late, spoil a gradient.
#pragma once

#include <compare>
#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <utility>

#include "parallel/step_observer.hpp"

namespace syslab::test {

struct WaitOf {
  parallel::Wait wait{};
  int number = 0;
  friend auto operator<=>(const WaitOf&, const WaitOf&) = default;
};

inline std::ostream& operator<<(std::ostream& stream, const WaitOf& one) {
  return stream << "wait " << static_cast<int>(one.wait) << " of number " << one.number;
}

struct Interference {
  std::function<bool(const WaitOf& wait)> waits;  // false: this wait is not made
  std::function<void(device::Stream)> before_work;
  std::function<void(int layer, int piece, std::span<double> gradient)> contribution;
};

class InterferingObserver final : public parallel::StepObserver {
 public:
  explicit InterferingObserver(Interference told) : told_(std::move(told)) {}

  bool waits(parallel::Wait wait, int number) override { return !told_.waits || told_.waits({wait, number}); }
  void before_work(device::Stream stream) override {
    if (told_.before_work) told_.before_work(stream);
  }
  void contribution(int layer, int piece, std::span<double> gradient) override {
    if (told_.contribution) told_.contribution(layer, piece, gradient);
  }

 private:
  Interference told_;
};

// For Interference::waits: all waits are made but this one, in every step.
inline std::function<bool(const WaitOf&)> all_but(std::optional<WaitOf> left_out) {
  return [left_out](const WaitOf& wait) { return wait != left_out; };
}

}  // namespace syslab::test
