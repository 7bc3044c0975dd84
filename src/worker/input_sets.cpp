#include "worker/input_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace syslab::worker {
namespace {

// `--data`: "normal" leaves each input as its specification says, another word replaces it everywhere, for study.
std::optional<Distribution> distribution_override(const std::string& data) {
  if (data.empty() || data == "normal") return std::nullopt;
  if (data == "uniform") return Distribution::uniform;
  if (data == "zeros") return Distribution::zeros;
  if (data == "ramp") return Distribution::ramp;
  throw Error(ErrorKind::usage,
              fmt::format("unknown input data '{}'; there are normal, uniform, zeros and ramp", data));
}

// A checksum at memory speed (one multiplication a word), so that it can follow every refresh. Not for identities.
std::uint64_t quick_hash(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL ^ bytes;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32;
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, at, bytes);
  return (hash ^ rest) * 0xff51afd7ed558ccdULL;
}

}  // namespace

InputSets::InputSets(const CaseContext& context, const OperatorCase& operator_case)
    : context_(context), case_(operator_case), distribution_(distribution_override(context.request().data)) {
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
      set.buffers.emplace_back(input.tensor.bytes(), input.tensor.name);
      set.tensors.inputs.emplace_back(set.buffers.back().data(), input.tensor.dtype, input.tensor.shape);
    }
    for (const OutputSpec& output : case_.outputs) set.outputs.emplace_back(output.tensor);
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
    if (input.prepared) continue;
    const RandomStream stream = context_.stream(fmt::format("{}:{}", input.tensor.name, number));
    const std::uint64_t first = (set.generation - 1) * static_cast<std::uint64_t>(input.tensor.shape.elements());
    fill(writable.back(), stream, distribution_.value_or(input.distribution), input.scale, first);
  }
  if (case_.prepare) case_.prepare(writable);
  set.fingerprints.clear();
  for (std::size_t i = 0; i < case_.inputs.size(); ++i) set.fingerprints.push_back(fingerprint(set, i));
  for (check::GuardedTensor& output : set.outputs) output.poison();
}

std::uint64_t InputSets::fingerprint(const Set& set, std::size_t input) const {
  return quick_hash(set.buffers[input].data(), case_.inputs[input].tensor.bytes());
}

std::optional<std::string> InputSets::misuse(int number, std::size_t output) const {
  const check::GuardedTensor& tensor = sets_[index(number)].outputs[output];
  if (auto violation = tensor.violation()) return violation;
  const std::string& name = tensor.spec().name;
  if (const std::int64_t unwritten = tensor.unwritten(); unwritten > 0) {
    return fmt::format("{}: {} of {} elements were never written", name, unwritten, tensor.spec().shape.elements());
  }
  const std::vector<double> values = to_doubles(tensor.view());
  const auto nans = std::count_if(values.begin(), values.end(), [](double value) { return std::isnan(value); });
  if (nans > 0) return fmt::format("{}: {} of {} elements are NaN", name, nans, values.size());
  return std::nullopt;
}

std::optional<std::string> InputSets::changed_inputs(int number) const {
  const Set& set = sets_[index(number)];
  for (std::size_t i = 0; i < case_.inputs.size(); ++i) {
    if (fingerprint(set, i) == set.fingerprints[i]) continue;
    return fmt::format("the call changed its input '{}'", case_.inputs[i].tensor.name);
  }
  return std::nullopt;
}

}  // namespace syslab::worker
