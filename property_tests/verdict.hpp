// How a law fails: with what was found, what was expected and where it sits.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check/compare.hpp"
#include "check/guard.hpp"
#include "check/law.hpp"

namespace syslab::property {

[[noreturn]] void fail(const std::string& why, FindingKind kind = FindingKind::wrong_value,
                       std::optional<Lack> lacks = {}, FaultDetails details = {});

// Records the worst error; fails unless every element is within its tolerance. `tolerance` may have one element for
// all. `what` names the tensor: "out", "dk". `row_dim` is the dimension that kernels cut into tiles.
void demand_within(std::string_view what, const ConstTensorView& found, std::span<const double> expected,
                   std::span<const double> tolerance, check::Observation& observation, int row_dim = 2);
// The same for values that are no tensor's memory, row-major in `shape`.
void demand_within(std::string_view what, std::span<const double> found, const Shape& shape,
                   std::span<const double> expected, std::span<const double> tolerance, check::Observation& observation,
                   int row_dim = 2);

// Fails unless both hold equal numbers (so −0 equals 0, and a NaN nothing).
void demand_equal(std::string_view what, std::span<const double> found, const Shape& shape,
                  std::span<const double> expected, check::Observation& observation, int row_dim = 2);

// Fails unless the tensor's guards are whole.
void demand_unharmed(const check::GuardedTensor& tensor);
// … and, an input, it still holds `values`, row-major.
void demand_untouched(const check::GuardedTensor& tensor, std::span<const double> values, int row_dim = 0);
// … and, an output, every element of it was written.
void demand_written(const check::GuardedTensor& tensor);

}  // namespace syslab::property
