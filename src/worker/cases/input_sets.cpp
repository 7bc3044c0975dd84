#include "worker/cases/input_sets.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "check/fingerprint.hpp"
#include "device/fill_random.hpp"
#include "device/memory.hpp"
#include "device/pattern.hpp"
#include "device/stream.hpp"

namespace syslab::worker {
namespace {

constexpr std::uint64_t kMostRedrawnBytes = 16U << 20;  // of one input, from its second content on
constexpr std::int64_t kStripes = 8;

// `--data`.
Distribution distribution_of(const std::string& data) {
  if (data.empty() || data == "normal") return Distribution::normal;
  if (data == "uniform") return Distribution::uniform;
  if (data == "zeros") return Distribution::zeros;
  if (data == "ramp") return Distribution::ramp;
  throw Error(ErrorKind::usage,
              fmt::format("unknown input data '{}'; there are normal, uniform, zeros and ramp", data));
}

}  // namespace

InputSets::InputSets(const CaseContext& context, const Operation& operation, device::Stream stream)
    : context_(context),
      operation_(operation),
      stream_(stream),
      distribution_(distribution_of(context.request().data)) {
  grow(1);
}

std::uint64_t InputSets::bytes_per_set() const {
  std::uint64_t bytes = 0;
  for (const TensorSpec& input : operation_.inputs) bytes += input.bytes();
  for (const TensorSpec& output : operation_.outputs) bytes += output.bytes();
  return bytes;
}

void InputSets::grow(int count) {
  while (this->count() < count) {
    Set set;
    for (const TensorSpec& input : operation_.inputs) {
      set.buffers.emplace_back(input.bytes(), input.name, stream_, device::MemoryCategory::input);
      set.input_views.emplace_back(set.buffers.back().data(), input.dtype, input.shape);
    }
    for (const TensorSpec& output : operation_.outputs) set.outputs.emplace_back(output, stream_);
    set.fingerprints = device::Buffer(2 * operation_.inputs.size() * sizeof(std::uint64_t), "fingerprints", stream_);
    for (const check::GuardedTensor& output : set.outputs) set.output_views.push_back(output.view());
    sets_.push_back(std::move(set));
    refresh(this->count() - 1);
  }
}

void InputSets::refresh(int number) {
  Set& set = sets_[index(number)];
  ++set.generation;
  std::vector<TensorView> writable;
  for (std::size_t i = 0; i < operation_.inputs.size(); ++i) {
    const TensorSpec& input = operation_.inputs[i];
    writable.emplace_back(set.buffers[i].data(), input.dtype, input.shape);
    const bool prepared = std::ranges::count(operation_.prepared, input.name) > 0;
    if (!prepared) draw(writable.back(), input.name, number, set.generation);
  }
  if (operation_.prepare) operation_.prepare(writable, stream_);
  take_fingerprints(set, 0);
  for (check::GuardedTensor& output : set.outputs) output.poison();
}

// The first content is drawn completely. Later contents of a large input of our own kernels are new only in stripes, at
// different places each time: drawing 256 MiB takes one core a third of a second, three times as long as the call that
// is to be timed. Somebody else's could compute the changed rows alone, and meets new content everywhere.
void InputSets::draw(const TensorView& whole, const std::string& input, int number, std::uint64_t generation) {
  const std::string name = fmt::format("{}:{}", input, number);
  const bool is_checked = number == 0 && generation == 1;  // what the seed stands for: all that follows is timed
  const RandomStream stream = is_checked ? context_.stream(name) : context_.unforeseen(name);
  const std::int64_t elements = whole.elements();
  const std::uint64_t drawn_before = (generation - 1) * static_cast<std::uint64_t>(elements);
  const auto draw_part = [&](std::int64_t begin, std::int64_t count) {
    const auto width = static_cast<std::int64_t>(size_of(whole.dtype));
    device::fill_random(TensorView(static_cast<std::byte*>(whole.data) + begin * width, whole.dtype, {count}), stream,
                        distribution_, 1.0F, drawn_before + static_cast<std::uint64_t>(begin), stream_);
  };
  const auto most = static_cast<std::int64_t>(kMostRedrawnBytes / size_of(whole.dtype));
  if (generation == 1 || elements <= most || context_.request().mine) return draw_part(0, elements);
  const std::int64_t stripe = most / kStripes, every = elements / kStripes;  // every > stripe
  const auto shift =
      static_cast<std::int64_t>(stream.bits(~generation) % static_cast<std::uint64_t>(every - stripe + 1));
  for (std::int64_t i = 0; i < kStripes; ++i) draw_part(i * every + shift, stripe);
}

// Queued, not waited for: what they are is looked at when somebody asks.
void InputSets::take_fingerprints(const Set& set, std::size_t first) const {
  for (std::size_t i = 0; i < operation_.inputs.size(); ++i) {
    check::fingerprint(set.buffers[i].data(), operation_.inputs[i].bytes(),
                       set.fingerprints.as<std::uint64_t>() + first + i, stream_);
  }
}

std::optional<std::string> InputSets::misuse(int number, std::size_t output) const {
  const check::GuardedTensor& tensor = sets_[index(number)].outputs[output];
  if (auto violation = tensor.violation()) return violation;
  const std::string& name = tensor.spec().name;
  const std::int64_t elements = tensor.spec().shape.elements();
  if (const std::int64_t unwritten = tensor.unwritten(); unwritten > 0) {
    return fmt::format("{}: {} of {} elements were never written", name, unwritten, elements);
  }
  if (const std::int64_t nans = tensor.nans(); nans > 0) {
    return fmt::format("{}: {} of {} elements are NaN", name, nans, elements);
  }
  return std::nullopt;
}

int InputSets::first_with_nans(std::span<const int> sets) const {
  std::vector<device::Elements> all;
  for (const int set : sets) {
    for (const TensorView& output : outputs(set)) all.push_back({output.data, output.dtype, output.elements()});
  }
  const std::int64_t found = device::first_with_nans(all, stream_);
  return found < 0 ? -1 : sets[static_cast<std::size_t>(found) / operation_.outputs.size()];
}

std::optional<std::string> InputSets::changed_inputs(int number) const {
  const Set& set = sets_[index(number)];
  const std::size_t count = operation_.inputs.size();
  take_fingerprints(set, count);
  std::vector<std::uint64_t> taken(2 * count);
  device::copy_now(taken.data(), set.fingerprints.data(), set.fingerprints.bytes(), stream_);
  for (std::size_t i = 0; i < count; ++i) {
    if (taken[i] == taken[count + i]) continue;
    return fmt::format("the call changed its input '{}'", operation_.inputs[i].name);
  }
  return std::nullopt;
}

InputSets::OnHost InputSets::on_host(int number) const {
  OnHost here;
  if (stream_.kind == device::Kind::cpu) {
    here.inputs = inputs(number);
    here.outputs = outputs(number);
    return here;
  }
  const auto brought = [&](const void* data, const TensorSpec& spec) {
    here.memory.emplace_back(spec.bytes(), spec.name);
    device::copy(here.memory.back().data(), data, spec.bytes(), stream_);
    return TensorView(here.memory.back().data(), spec.dtype, spec.shape);
  };
  for (std::size_t i = 0; i < operation_.inputs.size(); ++i) {
    here.inputs.emplace_back(brought(inputs(number)[i].data, operation_.inputs[i]));
  }
  for (std::size_t i = 0; i < operation_.outputs.size(); ++i) {
    here.outputs.push_back(brought(outputs(number)[i].data, operation_.outputs[i]));
  }
  device::synchronize(stream_);
  return here;
}

std::vector<Expected> InputSets::expect(int number) const {
  if (stream_.kind == device::Kind::cpu) return operation_.expect(inputs(number));
  if (operation_.expect_there) return operation_.expect_there(inputs(number), stream_);
  return operation_.expect(on_host(number).inputs);
}

}  // namespace syslab::worker
