#include "comm/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/signature.hpp"
#include "core/error.hpp"
#include "device/memory.hpp"

namespace syslab::comm {

namespace {

[[noreturn]] void refuse(Operation operation, const std::string& why) {
  throw Error(ErrorKind::usage, fmt::format("{}: {}", to_string(operation), why));
}

bool is_contiguous(const ConstTensorView& view) {
  std::int64_t step = 1;
  for (int dim = view.shape.rank() - 1; dim >= 0; --dim) {
    if (view.size(dim) != 1 && view.stride(dim) != step) return false;
    step *= view.size(dim);
  }
  return true;
}

void expect_memory(Operation operation, const ConstTensorView& view) {
  if (view.elements() == 0) return;
  if (view.data == nullptr) refuse(operation, "the buffer has elements and no memory");
  if (!is_contiguous(view)) {
    refuse(operation,
           fmt::format("the buffer of shape {} is not contiguous: copy it into one that is", to_string(view.shape)));
  }
}

// Checks a part against the whole: sizes fit, and the part is separate memory or exactly the rank's own piece.
void expect_parts(Operation operation, const ConstTensorView& part, const ConstTensorView& all, int rank, int size) {
  expect_memory(operation, part);
  expect_memory(operation, all);
  if (all.elements() != part.elements() * size || part.dtype != all.dtype) {
    refuse(operation, fmt::format("a part of {} {} elements and a whole of {} {}: the whole must hold {} parts, one a "
                                  "rank, of the same dtype",
                                  part.elements(), to_string(part.dtype), all.elements(), to_string(all.dtype), size));
  }
  const std::size_t bytes = static_cast<std::size_t>(part.elements()) * size_of(part.dtype);
  const auto* piece = static_cast<const std::byte*>(part.data);
  const auto* begin = static_cast<const std::byte*>(all.data);
  const bool apart = piece + bytes <= begin || begin + bytes * static_cast<std::size_t>(size) <= piece;
  if (bytes > 0 && !apart && piece != begin + bytes * static_cast<std::size_t>(rank)) {
    refuse(operation,
           fmt::format("the part overlaps the whole elsewhere than at piece {}, which is this rank's", rank));
  }
}

}  // namespace

void copy_alone(const Call& call) {
  if (call.in != call.out) device::copy(call.out, call.in, call.signature.bytes(), call.stream);
}

Communicator::Communicator(int rank, int size, CommunicatorOptions options, std::shared_ptr<Failure> failure)
    : rank_(rank),
      size_(size),
      options_(options),
      failure_(std::move(failure)),
      counters_(size),
      recorder_(rank, size),
      sent_(static_cast<std::size_t>(size > 0 ? size : 0)),
      received_(sent_) {
  if (size < 1 || rank < 0 || rank >= size) {
    throw Error(ErrorKind::usage,
                fmt::format("rank {} of {} ranks: ranks count from 0 and there is at least one", rank, size));
  }
}

void Communicator::expect_rank(Operation operation, int rank, bool another) const {
  if (rank < 0 || rank >= size_) refuse(operation, fmt::format("there is no rank {} among {}", rank, size_));
  if (another && rank == rank_) refuse(operation, fmt::format("rank {} cannot be its own counterpart", rank));
}

Call Communicator::begin(Operation operation, const ConstTensorView& buffer, const Purpose& purpose,
                         device::Stream stream) {
  if (stream.kind != kind()) {
    refuse(operation, fmt::format("the stream is of {} and the communicator ({}) of {}",
                                  stream.kind == device::Kind::cpu ? "the CPU" : "a GPU", backend(),
                                  kind() == device::Kind::cpu ? "the CPU" : "a GPU"));
  }
  if (grouped_ && !group_.empty() && is_pairwise(group_[0].signature.operation) != is_pairwise(operation)) {
    refuse(operation, "a group holds collectives, or sends and receives: call end_group() first");
  }
  if (grouped_ && !group_.empty() && group_[0].stream.handle != stream.handle) {
    refuse(operation, "a group is of one stream: make one group a stream");
  }
  expect_memory(operation, buffer);
  failure_->throw_if_failed(rank_);
  Call call;
  call.signature.operation = operation;
  call.signature.count = buffer.elements();
  call.signature.dtype = buffer.dtype;
  call.signature.kind = FixedText<16>(purpose.kind);
  call.signature.label = FixedText<40>(purpose.label);
  call.stream = stream;
  return call;
}

Work Communicator::submit(Call call) {
  Signature& signature = call.signature;
  const auto peer = static_cast<std::size_t>(signature.peer);
  signature.number = signature.operation == Operation::send      ? ++sent_[peer]
                     : signature.operation == Operation::receive ? ++received_[peer]
                                                                 : ++collectives_;
  call.work = ++works_;
  call.record = recorder_.add(call);
  counters_.add(signature);
  const Work work{call.work};
  if (grouped_) {
    group_.push_back(call);
  } else {
    give_to_backend({&call, 1});
  }
  return work;
}

void Communicator::give_to_backend(std::span<const Call> calls) {
  const Signature& first = calls[0].signature;
  if (size_ == 1 || first.count == 0) {
    for (const Call& call : calls) queue_alone(call);
    return;
  }
  if (is_pairwise(first.operation)) return queue(calls);
  if (options_.check_signatures && !compares_signatures()) {
    for (const Call& call : calls) compare_signatures(call.signature);
  }
  if (groups_collectives()) return queue(calls);
  for (const Call& call : calls) queue({&call, 1});
}

void Communicator::compare_signatures(const Signature& signature) {
  const std::string_view mine(reinterpret_cast<const char*>(&signature), sizeof signature);
  const std::vector<std::string> texts = of_host(Operation::exchange, mine);
  std::vector<Signature> all(texts.size());
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    // A text of another size is not a signature: that rank is in an exchange of its own.
    if (texts[rank].size() == sizeof(Signature))
      texts[rank].copy(reinterpret_cast<char*>(&all[rank]), sizeof(Signature));
  }
  const std::string difference = disagreement(all);
  if (difference.empty()) return;
  fail(difference, {EndingKind::disagreement, -1});
  failure_->throw_if_failed(rank_);
}

Work Communicator::all_reduce(const TensorView& buffer, Reduction reduction, const Purpose& purpose,
                              device::Stream stream) {
  Call call = begin(Operation::all_reduce, buffer, purpose, stream);
  call.signature.reduction = reduction;
  call.in = call.out = buffer.data;
  return submit(call);
}

Work Communicator::reduce_scatter(const TensorView& all, const TensorView& part, Reduction reduction,
                                  const Purpose& purpose, device::Stream stream) {
  expect_parts(Operation::reduce_scatter, part, all, rank_, size_);
  Call call = begin(Operation::reduce_scatter, part, purpose, stream);
  call.signature.reduction = reduction;
  call.in = all.data;
  call.out = part.data;
  return submit(call);
}

Work Communicator::all_gather(const ConstTensorView& part, const TensorView& all, const Purpose& purpose,
                              device::Stream stream) {
  expect_parts(Operation::all_gather, part, all, rank_, size_);
  Call call = begin(Operation::all_gather, part, purpose, stream);
  call.in = part.data;
  call.out = all.data;
  return submit(call);
}

Work Communicator::broadcast(const TensorView& buffer, int root, const Purpose& purpose, device::Stream stream) {
  expect_rank(Operation::broadcast, root, false);
  Call call = begin(Operation::broadcast, buffer, purpose, stream);
  call.signature.peer = root;
  call.in = call.out = buffer.data;
  return submit(call);
}

Work Communicator::send(const ConstTensorView& buffer, int to, const Purpose& purpose, device::Stream stream) {
  expect_rank(Operation::send, to, true);
  Call call = begin(Operation::send, buffer, purpose, stream);
  call.signature.peer = to;
  call.in = buffer.data;
  return submit(call);
}

Work Communicator::receive(const TensorView& buffer, int from, const Purpose& purpose, device::Stream stream) {
  expect_rank(Operation::receive, from, true);
  Call call = begin(Operation::receive, buffer, purpose, stream);
  call.signature.peer = from;
  call.out = buffer.data;
  return submit(call);
}

void Communicator::begin_group() {
  failure_->throw_if_failed(rank_);  // a failure may have left a group open
  if (grouped_) throw Error(ErrorKind::usage, "begin_group: a group is open already; call end_group() first");
  grouped_ = true;
}

void Communicator::end_group() {
  if (!grouped_) throw Error(ErrorKind::usage, "end_group: no group is open; call begin_group() first");
  grouped_ = false;
  // Messages without elements are not sent, neither here nor outside a group.
  std::vector<Call> calls = std::exchange(group_, {});
  failure_->throw_if_failed(rank_);
  const auto empty =
      std::stable_partition(calls.begin(), calls.end(), [](const Call& call) { return call.signature.count > 0; });
  if (empty != calls.begin()) give_to_backend({calls.begin(), empty});
  for (auto call = empty; call != calls.end(); ++call) queue_alone(*call);
}

std::vector<std::string> Communicator::of_host(Operation operation, std::string_view text) {
  failure_->throw_if_failed(rank_);
  Call call;
  call.signature.operation = operation;
  call.signature.number = ++of_host_;
  call.signature.kind = FixedText<16>("control");
  call.record = recorder_.add(call);
  counters_.add(call.signature);
  recorder_.start(call.record);
  std::vector<std::string> texts{std::string(text)};
  try {
    if (size_ > 1) texts = exchange_now(call, text);
  } catch (const std::exception& error) {
    recorder_.end(call.record, false);
    fail(error.what(), blame_of(error, rank_));
    failure_->throw_if_failed(rank_);
    throw;
  }
  recorder_.end(call.record, true);
  return texts;
}

void Communicator::barrier() { static_cast<void>(of_host(Operation::barrier, {})); }

std::vector<std::string> Communicator::exchange(std::string_view text) { return of_host(Operation::exchange, text); }

void Communicator::wait(Work work) {
  if (work.sequence == 0 || work.sequence > works_) {
    throw Error(ErrorKind::usage, fmt::format("wait: rank {} has queued {} operations and is asked to wait for number "
                                              "{}: is it of another communicator?",
                                              rank_, works_, work.sequence));
  }
  if (!group_.empty() && work.sequence >= group_[0].work) {
    throw Error(ErrorKind::usage, "wait: the operation stands in a group that is open; call end_group() first");
  }
  wait_until_done(work.sequence);
}

void Communicator::abort(std::string_view reason) noexcept {
  try {
    fail(fmt::format("rank {} ended the communication: {}", rank_, reason), {EndingKind::failure, rank_});
  } catch (...) {  // no memory for the text
    fail("a rank ended the communication", {EndingKind::failure, rank_});
  }
}

void Communicator::set_phase(std::string_view phase, std::uint64_t step) {
  if (companion_ != nullptr) companion_->set_phase(phase, step);
}

void Communicator::part() noexcept {
  if (companion_ != nullptr) companion_->leave();
}

void Communicator::fail(std::string_view text, const Blame& blame) noexcept {
  try {
    if (failure_->set(text, blame)) spread(text);
  } catch (...) {  // no memory for the text: it stays empty, and the others reach their time limit
  }
}

}  // namespace syslab::comm
