#include "parallel/zero/parameter_owners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "core/error.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"
#include "parallel/bytes_of.hpp"
#include "parallel/moves.hpp"
#include "parallel/replicas.hpp"

namespace syslab::parallel {
namespace {

constexpr std::string_view kParameterKind = "parameter";

const std::byte* begin_of(const TensorView& view) { return static_cast<const std::byte*>(view.data); }
const std::byte* end_of(const TensorView& view) { return begin_of(view) + bytes_of(view); }

void expect_fit(const OptimizedParameter& one) {
  const bool fits =
      one.weight.data != nullptr && one.weight.elements() > 0 &&
      (one.frozen() || (one.gradient.dtype == one.weight.dtype && one.gradient.elements() == one.weight.elements()));
  if (fits) return;
  throw Error(ErrorKind::usage,
              fmt::format("the parameter '{}' has {} weights in {} and {} gradients in {}: at least one weight and as "
                          "many gradients of its dtype are wanted, or none of a frozen one",
                          one.name, one.weight.elements(), to_string(one.weight.dtype), one.gradient.elements(),
                          to_string(one.gradient.dtype)));
}

bool same_memory(const TensorView& a, const TensorView& b) { return a.data == b.data && bytes_of(a) == bytes_of(b); }
bool overlap(const TensorView& a, const TensorView& b) { return begin_of(a) < end_of(b) && begin_of(b) < end_of(a); }

// Keeps the order and drops repeated parameters.
std::vector<OptimizedParameter> without_repeats(std::span<const OptimizedParameter> group) {
  std::vector<OptimizedParameter> made;
  for (const OptimizedParameter& one : group) {
    const bool tied = std::ranges::any_of(
        made, [&](const OptimizedParameter& before) { return same_memory(before.weight, one.weight); });
    if (!tied) made.push_back(one);
  }
  return made;
}

// Checks against `other`, which was added earlier.
void expect_apart(const OptimizedParameter& one, const OptimizedParameter& other, int other_group) {
  if (other.frozen() || !overlap(one.weight, other.weight)) return;
  throw Error(ErrorKind::usage,
              fmt::format("the parameter '{}' is in group {} already, as '{}': a parameter has one group, and only one "
                          "that was frozen there can be given again",
                          one.name, other_group, other.name));
}

}  // namespace

ParameterOwners::ParameterOwners(comm::Communicator& ranks, device::Stream communication, StepObserver* observer)
    : ranks_(ranks),
      communication_(communication),
      observer_(observer),
      loads_(static_cast<std::size_t>(ranks.size()), 0),
      updated_(device::place_of(communication)),
      arrived_(device::place_of(communication)) {}

void ParameterOwners::expect_new(std::span<const OptimizedParameter> group) const {
  for (std::size_t i = 0; i < group.size(); ++i) {
    expect_fit(group[i]);
    for (const OptimizedParameter& before : group.first(i)) expect_apart(group[i], before, groups_);
    for (const Owned& other : all_) expect_apart(group[i], other.parameter, other.group);
  }
}

std::vector<OptimizedParameter> ParameterOwners::add(std::span<const OptimizedParameter> group,
                                                     const std::string& options) {
  const std::vector<OptimizedParameter> distinct = without_repeats(group);
  try {
    expect_new(distinct);
  } catch (const Error& error) {
    ranks_.abort(error.what());  // the others would wait for this rank's description
    throw;
  }
  std::string text = fmt::format("group {}: {}\n", groups_, options);
  for (const OptimizedParameter& one : distinct) {
    text += fmt::format("'{}' of {} elements in {}, {}\n", one.name, one.weight.elements(), to_string(one.weight.dtype),
                        one.frozen() ? "frozen" : "trained");
  }
  require_agreement(ranks_, "the parameters to optimize", text);

  std::vector<std::int64_t> elements;
  for (const OptimizedParameter& one : distinct) {
    if (!one.frozen()) elements.push_back(one.weight.elements());
  }
  const std::vector<int> owners = assign_owners(elements, loads_);
  std::vector<OptimizedParameter> own;
  std::size_t next = 0;
  for (const OptimizedParameter& one : distinct) {
    const int owner = one.frozen() ? -1 : owners[next++];
    all_.push_back({one, owner, groups_});
    if (owner == ranks_.rank()) own.push_back(one);
  }
  ++groups_;
  plan_runs();
  return own;
}

// Parameters that can be sent together. Their order is the same on all ranks, that of their addresses need not be: only
// parameters that follow each other in both are joined, and the ranks compare the result.
void ParameterOwners::plan_runs() {
  runs_.clear();
  std::string joined;
  for (const Owned& one : all_) {
    if (one.owner < 0) continue;
    const TensorView& weight = one.parameter.weight;
    if (!runs_.empty() && runs_.back().owner == one.owner && runs_.back().weights.dtype == weight.dtype &&
        end_of(runs_.back().weights) == begin_of(weight)) {
      TensorView& run = runs_.back().weights;
      run = {run.data, run.dtype, {1, run.elements() + weight.elements()}};
      joined += fmt::format("'{}' follows the one before it in memory\n", one.parameter.name);
    } else {
      runs_.push_back({{weight.data, weight.dtype, {1, weight.elements()}}, one.owner, one.parameter.name});
    }
  }
  require_agreement(ranks_, "how parameters lie in memory", joined);
}

void ParameterOwners::broadcast(device::Stream compute) {
  if (ranks_.size() == 1) return;
  updated_.record(compute);
  wait_for(observer_, Wait::weights_updated, updated_, communication_);
  try {
    for (const Run& run : runs_) ranks_.broadcast(run.weights, run.owner, {kParameterKind, run.label}, communication_);
  } catch (const std::exception& error) {
    ranks_.abort(error.what());  // the others wait for broadcasts that will not come
    leave_behind(compute);
    throw;
  }
  arrived_.record(communication_);
  wait_for(observer_, Wait::weights_gathered, arrived_, compute);
  // On the plain stream the host itself has waited, so a failure is known by now.
  ranks_.throw_if_failed();
}

// The broadcasts queued so far still write weights, and whoever catches the error may free those, after synchronizing
// `compute` or in its stream order, as GPU memory is freed. So `compute` has to wait: a wait of the host would not
// order the GPU's streams.
void ParameterOwners::leave_behind(device::Stream compute) noexcept {
  try {
    arrived_.record(communication_);
    arrived_.before(compute);
  } catch (...) {  // a lost device writes nothing
    device::await_queue(communication_);
  }
}

void ParameterOwners::zero_gradients(device::Stream compute) const {
  for (const Owned& one : all_) {
    const TensorView& gradient = one.parameter.gradient;
    if (one.owner >= 0) device::fill_bytes(gradient.data, 0, bytes_of(gradient), compute);
  }
}

}  // namespace syslab::parallel
