#include "parallel/fsdp/fsdp.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "device/memory.hpp"
#include "model/tensor.hpp"
#include "model/weights/convert.hpp"
#include "parallel/moves.hpp"
#include "parallel/replicas.hpp"

namespace syslab::parallel {
namespace {

using comm::Operation;
using device::Buffer;
using device::MemoryCategory;
using device::Stream;

Buffer memory(std::int64_t elements, DType dtype, std::string_view tag, MemoryCategory category, Stream stream) {
  return {static_cast<std::size_t>(elements) * size_of(dtype), tag, stream, category};
}

}  // namespace

Fsdp::Fsdp(comm::Communicator& ranks, FsdpParts parts, const FsdpOptions& options, Stream compute, Stream communication)
    : ranks_(ranks),
      parts_(std::move(parts)),
      options_(options),
      compute_(compute),
      communication_(communication),
      layout_(parts_, ranks.size()),
      weights_(memory(layout_.elements(), parts_.dtype, "weight shards", MemoryCategory::parameter, compute)),
      gradients_(memory(layout_.elements(), parts_.dtype, "gradient shards", MemoryCategory::gradient, compute)),
      awaits_(communication, compute),
      context_(ranks, parts_, layout_, compute, communication, options.observer),
      gathered_(context_, whole(weights_), options.gather),
      scattered_(context_, whole(gradients_), options.scatter),
      counted_before_(counted()) {
  for (const Buffer* shards : {&weights_, &gradients_}) device::fill_bytes(shards->data(), 0, shards->bytes(), compute);
  require_agreement(ranks, "what is sharded, and how", description());
}

// One line for the options and one for each matrix, bracket and unit: all ranks must have the same text.
std::string Fsdp::description() const {
  std::string text =
      fmt::format("{} slots, {} for gradients, {} after the forward pass, in {}, sent in {}\n", options_.gather.slots,
                  options_.scatter.slots, options_.gather.reshard_after_forward ? "resharded" : "kept",
                  to_string(parts_.dtype), to_string(options_.scatter.wire.value_or(parts_.dtype)));
  for (const ShardedMatrix& one : parts_.matrices)
    text += fmt::format("'{}' {} by {}\n", one.name, one.rows, one.width);
  for (const ReplicatedTensor& one : parts_.replicated) text += fmt::format("'{}' {}\n", one.name, one.elements);
  for (const FsdpBracket& one : parts_.brackets) {
    text += fmt::format("together {} in {}\n", fmt::join(one.matrices, " "), to_string(one.gathered));
  }
  for (const std::vector<int>& unit : parts_.units) text += fmt::format("gathered {}\n", fmt::join(unit, " "));
  return text + fmt::format("read {}\n", fmt::join(parts_.training_reads, " "));
}

// This rank has elements [begin, end) of a tensor, at `offset` in its shards. Writes those that `values`, which begin
// at element `first`, contain.
void Fsdp::write_at(std::int64_t offset, std::int64_t begin, std::int64_t end, std::int64_t first,
                    const ConstTensorView& values) {
  const std::int64_t from = std::max(begin, first), to = std::min(end, first + values.elements());
  if (from >= to) return;
  const TensorView place = stretch(weights(), offset + from - begin, to - from);
  ConstTensorView taken = model::shifted(values, from - first);
  taken.shape = {1, to - from};
  taken.strides = contiguous_strides(taken.shape);
  std::vector<std::byte> staged(static_cast<std::size_t>(to - from) * size_of(place.dtype));
  model::convert(taken, TensorView(staged.data(), place.dtype, taken.shape));
  device::copy_now(place.data, staged.data(), staged.size(), compute_);
}

void Fsdp::write(int matrix, std::int64_t first, const ConstTensorView& values) {
  const std::int64_t begin = ranks_.rank() * layout_.chunk(matrix);
  const std::int64_t width = parts_.matrices[static_cast<std::size_t>(matrix)].width;
  write_at(layout_.offset(matrix), begin, begin + layout_.own_rows(matrix, ranks_.rank()) * width, first, values);
}

void Fsdp::write_replicated(int tensor, std::int64_t first, const ConstTensorView& values) {
  write_at(layout_.replicated_offset(tensor), 0, parts_.replicated[static_cast<std::size_t>(tensor)].elements, first,
           values);
}

std::vector<double> Fsdp::gather_now(int matrix) {
  const ShardedMatrix& of = parts_.matrices[static_cast<std::size_t>(matrix)];
  const std::int64_t chunk = layout_.chunk(matrix);
  device::synchronize(compute_);
  const Buffer all(static_cast<std::size_t>(ranks_.size() * chunk) * size_of(parts_.dtype), "a whole matrix", compute_);
  const TensorView flat(all.data(), parts_.dtype, {1, ranks_.size() * chunk});
  ranks_.all_gather(stretch(weights(), layout_.offset(matrix), chunk), flat, {"export", of.name.substr(0, 40)},
                    communication_);
  device::synchronize(communication_);
  ranks_.throw_if_failed();
  return model::values_of(stretch(flat, 0, of.rows * of.width), compute_);
}

std::vector<double> Fsdp::read_replicated(int tensor) const { return model::values_of(replicated(tensor), compute_); }

void Fsdp::begin(PassKind kind, bool add) {
  gathered_.begin(kind, in_step_);
  in_step_ = kind == PassKind::training;
  if (kind == PassKind::training) scattered_.begin(add);
}

void Fsdp::end() { gathered_.end(); }

void Fsdp::finish() {
  scattered_.finish();
  in_step_ = false;
}

Fsdp::Counted Fsdp::counted() const {
  const auto bytes = [this](Operation operation, std::string_view kind) {
    return ranks_.counters().total(operation, kind).payload_bytes;
  };
  return {bytes(Operation::all_gather, "parameter"), bytes(Operation::reduce_scatter, "gradient"),
          bytes(Operation::all_reduce, "gradient")};
}

void Fsdp::check_bytes() const {
  const Counted now = counted();
  const auto expect = [this](std::string_view what, std::uint64_t found, std::uint64_t expected) {
    if (found == expected) return;
    throw Error(ErrorKind::check, fmt::format("rank {} {} {} bytes where the plan makes {}: something else did under "
                                              "the same purpose, or a unit was missed",
                                              ranks_.rank(), what, found, expected));
  };
  expect("gathered", now.gathered - counted_before_.gathered, gathered_.expected_bytes());
  expect("scattered", now.scattered - counted_before_.scattered, scattered_.scattered_bytes());
  expect("reduced", now.reduced - counted_before_.reduced, scattered_.reduced_bytes());
}

}  // namespace syslab::parallel
