#include "parallel/zero/parameter_owners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>

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

// Each once, in the order in which they come.
std::vector<OptimizedParameter> without_repeats(std::span<const OptimizedParameter> group) {
  std::vector<OptimizedParameter> made;
  for (const OptimizedParameter& one : group) {
    const bool tied = std::ranges::any_of(
        made, [&](const OptimizedParameter& before) { return same_memory(before.weight, one.weight); });
    if (!tied) made.push_back(one);
  }
  return made;
}

// Of `other`, which was given before. Names are what a saved state is known by: two parameters of one would be saved as
// one.
void expect_apart(const OptimizedParameter& one, int group, const OptimizedParameter& other, int other_group) {
  if (one.name == other.name && !same_memory(one.weight, other.weight)) {
    throw Error(
        ErrorKind::usage,
        fmt::format("the name '{}' in group {} is another parameter's in group {}, of other memory: a parameter "
                    "is saved and resumed by its name; give each one of its own",
                    one.name, group, other_group));
  }
  if (other.frozen() || !overlap(one.weight, other.weight)) return;
  throw Error(ErrorKind::usage,
              fmt::format("the parameter '{}' is in group {} already, as '{}': a parameter has one group, and only one "
                          "that was frozen there can be given again",
                          one.name, other_group, other.name));
}

}  // namespace

std::vector<int> assign_owners(std::span<const std::int64_t> elements, std::vector<std::int64_t>& loads) {
  std::vector<std::size_t> order(elements.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t at) { return elements[at]; });
  std::vector<int> owners(elements.size());
  for (const std::size_t at : order) {
    const auto least = std::ranges::min_element(loads);
    owners[at] = static_cast<int>(least - loads.begin());
    *least += elements[at];
  }
  return owners;
}

ParameterOwners::ParameterOwners(comm::Communicator& ranks, device::Stream communication, int left_out_wait)
    : ranks_(ranks),
      communication_(communication),
      left_out_wait_(left_out_wait),
      loads_(static_cast<std::size_t>(ranks.size()), 0),
      updated_(device::place_of(communication)),
      arrived_(device::place_of(communication)) {}

void ParameterOwners::expect_new(std::span<const OptimizedParameter> group) const {
  for (std::size_t i = 0; i < group.size(); ++i) {
    expect_fit(group[i]);
    for (const OptimizedParameter& before : group.first(i)) expect_apart(group[i], groups_, before, groups_);
    for (const Owned& other : all_) expect_apart(group[i], groups_, other.parameter, other.group);
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

// What can travel together: the order of addresses may be another on every rank, that of the parameters is not, so that
// only those that follow each other in both are joined, which ranks then agree on.
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
  if (left_out_wait_ != 0) updated_.before(communication_);
  try {
    for (const Run& run : runs_) ranks_.broadcast(run.weights, run.owner, {kParameterKind, run.label}, communication_);
  } catch (const std::exception& error) {
    ranks_.abort(error.what());  // the others wait for what does not come any more
    leave_behind(compute);
    throw;
  }
  arrived_.record(communication_);
  if (left_out_wait_ != 1) arrived_.before(compute);
  // On the plain stream the wait was the host's, and what failed in the queue is known.
  ranks_.throw_if_failed();
}

// What was sent so far still writes weights, which whoever catches the error may free: after waiting for `compute`, or
// in its order, as memory of a GPU goes. A wait of the host alone would say nothing to a GPU's streams.
void ParameterOwners::leave_behind(device::Stream compute) noexcept {
  try {
    arrived_.record(communication_);
    arrived_.before(compute);
  } catch (...) {  // a device that is lost writes nothing
    device::await_queue(communication_);
  }
}

void ParameterOwners::zero_gradients(device::Stream compute) const {
  for (const Owned& one : all_) {
    const TensorView& gradient = one.parameter.gradient;
    if (one.owner >= 0) device::fill_bytes(gradient.data, 0, bytes_of(gradient), compute);
  }
}

// Whether a frozen parameter is another one, too: frozen in a group before, or trained in any.
bool ParameterOwners::is_repeated(const Owned& frozen) const {
  return std::ranges::any_of(all_, [&](const Owned& other) {
    const TensorView &there = other.parameter.weight, &here = frozen.parameter.weight;
    return same_memory(there, here) && (other.owner >= 0 || &other < &frozen);
  });
}

void ParameterOwners::add_moments(std::vector<StatePiece>& pieces, const MomentOf& moment) const {
  std::vector<int> next(static_cast<std::size_t>(groups_), 0);
  for (const Owned& one : all_) {
    if (one.owner != ranks_.rank()) continue;
    const int number = next[static_cast<std::size_t>(one.group)]++;
    for (const StatePlane plane : {StatePlane::first_moment, StatePlane::second_moment}) {
      pieces.push_back({plane, one.parameter.name, 0, moment(plane, one.group, number)});
    }
  }
}

std::vector<StatePiece> ParameterOwners::own_pieces(const MomentOf& moment) const {
  std::vector<StatePiece> pieces;
  for (const Owned& one : all_) {
    const bool own = one.owner < 0 ? ranks_.rank() == 0 && !is_repeated(one) : one.owner == ranks_.rank();
    if (own) pieces.push_back({StatePlane::weight, one.parameter.name, 0, one.parameter.weight});
  }
  add_moments(pieces, moment);
  return pieces;
}

std::vector<StatePiece> ParameterOwners::wanted_pieces(const MomentOf& moment) const {
  std::vector<StatePiece> pieces;
  for (const Owned& one : all_) {
    if (one.owner < 0 && is_repeated(one)) continue;
    pieces.push_back({StatePlane::weight, one.parameter.name, 0, one.parameter.weight});
  }
  add_moments(pieces, moment);
  return pieces;
}

std::uint64_t ParameterOwners::bytes_per_step() const {
  if (ranks_.size() == 1) return 0;
  std::uint64_t bytes = 0;
  for (const Run& run : runs_) bytes += bytes_of(run.weights);
  return bytes;
}

}  // namespace syslab::parallel
