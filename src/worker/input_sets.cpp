#include "worker/input_sets.hpp"

#include <fmt/format.h>

#include "check/fingerprint.hpp"
#include "device/fill_random.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"

namespace syslab::worker {
namespace {

constexpr std::uint64_t kMostRedrawnBytes = 16U << 20;  // of one input, from its second content on
constexpr std::int64_t kStripes = 8;

// `--data`: "normal" leaves each input as its specification says, another word replaces it everywhere, for study.
std::optional<Distribution> distribution_override(const std::string& data) {
  if (data.empty() || data == "normal") return std::nullopt;
  if (data == "uniform") return Distribution::uniform;
  if (data == "zeros") return Distribution::zeros;
  if (data == "ramp") return Distribution::ramp;
  throw Error(ErrorKind::usage,
              fmt::format("unknown input data '{}'; there are normal, uniform, zeros and ramp", data));
}

}  // namespace

InputSets::InputSets(const CaseContext& context, const OperatorCase& operator_case, device::Stream stream)
    : context_(context),
      case_(operator_case),
      stream_(stream),
      distribution_(distribution_override(context.request().data)) {
  grow(1);
}

std::uint64_t InputSets::bytes_per_set() const {
  std::uint64_t bytes = 0;
  for (const InputSpec& input : case_.inputs) bytes += input.tensor.bytes();
  for (const OutputSpec& output : case_.outputs) bytes += output.tensor.bytes();
  return bytes;
}

void InputSets::grow(int count) {
  while (this->count() < count) {
    Set set;
    for (const InputSpec& input : case_.inputs) {
      set.buffers.emplace_back(input.tensor.bytes(), input.tensor.name, stream_, device::MemoryCategory::input);
      set.tensors.inputs.emplace_back(set.buffers.back().data(), input.tensor.dtype, input.tensor.shape);
    }
    for (const OutputSpec& output : case_.outputs) set.outputs.emplace_back(output.tensor, stream_);
    set.fingerprints = device::Buffer(2 * case_.inputs.size() * sizeof(std::uint64_t), "fingerprints", stream_);
    set.tensors.stream = stream_;
    for (const check::GuardedTensor& output : set.outputs) set.tensors.outputs.push_back(output.view());
    sets_.push_back(std::move(set));
    refresh(this->count() - 1);
  }
}

void InputSets::refresh(int number) {
  Set& set = sets_[index(number)];
  ++set.generation;
  std::vector<TensorView> writable;
  for (std::size_t i = 0; i < case_.inputs.size(); ++i) {
    const InputSpec& input = case_.inputs[i];
    writable.emplace_back(set.buffers[i].data(), input.tensor.dtype, input.tensor.shape);
    if (!input.prepared) draw(writable.back(), input, number, set.generation);
  }
  if (case_.prepare) case_.prepare(writable, stream_);
  take_fingerprints(set, 0);
  for (check::GuardedTensor& output : set.outputs) output.poison();
}

// The first content whole. Of a large input later ones are new in stripes, which lie elsewhere each time: drawing 256
// MiB takes a core a second, ten times as long as the call that is to be timed.
void InputSets::draw(const TensorView& whole, const InputSpec& input, int number, std::uint64_t generation) {
  const RandomStream stream = context_.stream(fmt::format("{}:{}", input.tensor.name, number));
  const std::int64_t elements = whole.elements();
  const std::uint64_t drawn_before = (generation - 1) * static_cast<std::uint64_t>(elements);
  const auto draw_part = [&](std::int64_t begin, std::int64_t count) {
    const auto width = static_cast<std::int64_t>(size_of(whole.dtype));
    device::fill_random(TensorView(static_cast<std::byte*>(whole.data) + begin * width, whole.dtype, {count}), stream,
                        distribution_.value_or(input.distribution), input.scale,
                        drawn_before + static_cast<std::uint64_t>(begin), stream_);
  };
  const auto most = static_cast<std::int64_t>(kMostRedrawnBytes / size_of(whole.dtype));
  if (generation == 1 || elements <= most) return draw_part(0, elements);
  const std::int64_t stripe = most / kStripes, every = elements / kStripes;  // every > stripe
  const auto shift =
      static_cast<std::int64_t>(stream.bits(~generation) % static_cast<std::uint64_t>(every - stripe + 1));
  for (std::int64_t i = 0; i < kStripes; ++i) draw_part(i * every + shift, stripe);
}

// Queued, not waited for: what they are is looked at when somebody asks.
void InputSets::take_fingerprints(const Set& set, std::size_t first) const {
  for (std::size_t i = 0; i < case_.inputs.size(); ++i) {
    check::fingerprint(set.buffers[i].data(), case_.inputs[i].tensor.bytes(),
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

std::optional<std::string> InputSets::changed_inputs(int number) const {
  const Set& set = sets_[index(number)];
  const std::size_t count = case_.inputs.size();
  take_fingerprints(set, count);
  std::vector<std::uint64_t> taken(2 * count);
  device::copy_now(taken.data(), set.fingerprints.data(), set.fingerprints.bytes(), stream_);
  for (std::size_t i = 0; i < count; ++i) {
    if (taken[i] == taken[count + i]) continue;
    return fmt::format("the call changed its input '{}'", case_.inputs[i].tensor.name);
  }
  return std::nullopt;
}

std::vector<Expectation> InputSets::expect(int number) const {
  const Tensors& tensors = this->tensors(number);
  if (stream_.kind == device::Kind::cpu) return case_.expect(tensors);
  if (case_.expect_there) return case_.expect_there(tensors);
  std::vector<device::Buffer> memory;
  Tensors here;
  for (std::size_t i = 0; i < case_.inputs.size(); ++i) {
    const TensorSpec& spec = case_.inputs[i].tensor;
    memory.emplace_back(spec.bytes(), spec.name);
    device::copy(memory.back().data(), tensors.inputs[i].data, spec.bytes(), stream_);
    here.inputs.emplace_back(memory.back().data(), spec.dtype, spec.shape);
  }
  device::synchronize(stream_);
  return case_.expect(here);
}

}  // namespace syslab::worker
