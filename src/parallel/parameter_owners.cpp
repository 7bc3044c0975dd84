#include "parallel/parameter_owners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>

#include "core/error.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"
#include "parallel/moves.hpp"
#include "parallel/replicas.hpp"

namespace syslab::parallel {
namespace {

constexpr std::string_view kKind = "parameter";

std::size_t bytes_of(const TensorView& view) { return static_cast<std::size_t>(view.elements()) * size_of(view.dtype); }

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

// Each once, in the order in which they come.
std::vector<OptimizedParameter> without_repeats(std::span<const OptimizedParameter> group) {
  std::vector<OptimizedParameter> made;
  for (const OptimizedParameter& one : group) {
    const bool tied = std::ranges::any_of(made, [&](const OptimizedParameter& before) {
      return before.weight.data == one.weight.data && before.weight.elements() == one.weight.elements();
    });
    if (!tied) made.push_back(one);
  }
  return made;
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
  for (const OptimizedParameter& one : group) {
    expect_fit(one);
    for (const Owned& other : all_) {
      const bool apart = other.owner < 0 || end_of(one.weight) <= begin_of(other.parameter.weight) ||
                         end_of(other.parameter.weight) <= begin_of(one.weight);
      if (apart) continue;
      throw Error(ErrorKind::usage,
                  fmt::format("the parameter '{}' is in group {} already, as '{}': a parameter has one group, and only "
                              "one that was frozen there can be given again",
                              one.name, other.group, other.parameter.name));
    }
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
    for (const Run& run : runs_) ranks_.broadcast(run.weights, run.owner, {kKind, run.label}, communication_);
  } catch (...) {
    device::await_queue(communication_);  // what is queued writes weights that whoever catches this may free
    throw;
  }
  arrived_.record(communication_);
  if (left_out_wait_ != 1) arrived_.before(compute);
  // On the plain stream the wait was the host's, and what failed in the queue is known.
  ranks_.throw_if_failed();
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
    return there.data == here.data && there.elements() == here.elements() && (other.owner >= 0 || &other < &frozen);
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
