#include "comm/nccl/communicator.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

#include "comm/copy_engines/copy_engines.hpp"
#include "comm/copy_engines/marked_work.hpp"
#include "comm/nccl/handle.hpp"
#include "comm/rendezvous/agree.hpp"
#include "comm/rendezvous/common_start.hpp"
#include "comm/rendezvous/ending.hpp"
#include "comm/rendezvous/process_name.hpp"
#include "comm/rendezvous/socket.hpp"
#include "core/error.hpp"
#include "device/cuda/launch.hpp"
#include "device/properties.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr auto kQueueNap = 50us;  // between questions while something takes time
constexpr milliseconds kQuestionLimit{
    100};  // of one question to the rendezvous, between looks at whether all have failed

nccl::Type type_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return nccl::kFloat64;
    case DType::f32:
      return nccl::kFloat32;
    case DType::f16:
      return nccl::kFloat16;
    case DType::bf16:
      return nccl::kBfloat16;
  }
  return nccl::kFloat32;
}

nccl::Op op_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return nccl::kSum;
    case Reduction::max:
      return nccl::kMax;
    case Reduction::min:
      return nccl::kMin;
  }
  return nccl::kSum;
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<Rendezvous> rendezvous, const CommunicatorOptions& options, NcclOptions nccl)
      : Communicator(rendezvous == nullptr ? 0 : rendezvous->rank(), rendezvous == nullptr ? 1 : rendezvous->size(),
                     options),
        rendezvous_(std::move(rendezvous)),
        place_(nccl.place),
        marked_(place_, recorded(), [this] { return failed(); }) {
    if (!nccl.exit) nccl.exit = [] { ::_exit(static_cast<int>(Fault::peer)); };
    if (size() == 1) return;
    const auto opened = std::make_shared<NcclLibrary>(nccl.library);
    agree(*rendezvous_, "nccl",
          {{"NCCL version", opened->version()},
           {"multicast", opened->nvls()},
           {"copy engines", text_of(nccl.copy_engines)}},
          options.limit);
    expect_a_gpu_a_rank();
    if (rank() == 0) {
      fmt::print(stderr, "syslab: rank 0 of {}: NCCL {} from {}; {}\n", size(), opened->version(), opened->file(),
                 opened->nvls_and_by_whom());
    }
    handle_ = std::make_unique<NcclHandle>(opened, std::move(nccl), options.limit, [this] { throw_if_failed(); });
    try {
      handle_->make(*rendezvous_);
      if (const auto& copies = handle_->options().copy_engines) open_copy_engines(*copies);
    } catch (...) {
      handle_->give_up();
      throw;
    }
  }

  ~NcclCommunicator() override {
    finish();
    part();
    end_released();
    // After a failure, other ranks' released streams may still write to this memory, so it is leaked: it is freed when
    // the process ends.
    if (engines_ != nullptr && failed() && kind() == device::Kind::cuda) static_cast<void>(engines_.release());
  }

  std::function<void(const TensorView&, device::Stream)> raw_all_reduce() {
    return [this](const TensorView& buffer, device::Stream stream) {
      const nccl::Result given =
          library().api().ncclAllReduce(buffer.data, buffer.data, static_cast<std::size_t>(buffer.elements()),
                                        nccl::kFloat32, nccl::kSum, handle_->unlocked(), stream.handle);
      if (given != nccl::kInProgress) library().expect(given, "ncclAllReduce", handle_->unlocked());
      handle_->settle("ncclAllReduce", Clock::now() + options().limit);
    };
  }

  std::string_view backend() const override { return engines_ == nullptr ? "nccl" : "copy_engines"; }
  device::Kind kind() const override { return place_.kind; }

  void look() noexcept override {
    try {
      if (failed()) return;
      marked_.poll();
      if (handle_ != nullptr) handle_->expect_no_async_error();
    } catch (const std::exception& error) {
      fail(fmt::format("rank {}: {}", rank(), error.what()), blame_of(error, rank()));
    }
  }

 protected:
  void queue(std::span<const Call> calls) override {
    try {
      marked_.begin(calls);
      const std::span<const Call> rest = engines_ == nullptr ? calls : give_to_copy_engines(calls);
      if (!rest.empty()) {
        give_to_nccl(rest);
        handle_->settle(to_string(rest[0].signature.operation).data(), Clock::now() + options().limit);
      }
      marked_.end();
    } catch (const std::exception& error) {
      // Only now, with the lock released: fail() calls ncclCommAbort, which takes it.
      for (const Call& call : calls) recorded().end(call.record, false);
      fail(fmt::format("rank {}: {}: {}", rank(), name_of(calls[0].signature), error.what()), blame_of(error, rank()));
      throw_if_failed();
    }
  }

  bool groups_collectives() const override { return true; }

  void queue_alone(const Call& call) override {
    marked_.begin({&call, 1});
    copy_alone(call);
    marked_.end();
  }

  void wait_until_done(std::uint64_t work) override {
    const Deadline deadline = Clock::now() + options().limit;
    Deadline ask_at = Clock::now();
    while (true) {
      marked_.poll();
      const bool over = marked_.done() >= work;
      if (over) look();  // an operation that an error ended counts as done too
      throw_if_failed();
      if (over) return;
      if (Clock::now() >= ask_at) {
        ask_at = Clock::now() + 1ms;
        look();
      }
      if (Clock::now() >= deadline) {
        fail(fmt::format("rank {} waited {:.1f} s for its operation {} in vain", rank(),
                         std::chrono::duration<double>(options().limit).count(), work),
             {EndingKind::time_out, -1});
      }
      std::this_thread::sleep_for(kQueueNap);
    }
  }

  // All have come when a barrier's first texts are read, each rank at a moment of its own; then they agree on one.
  std::vector<std::string> exchange_now(const Call& call, std::string_view text) override {
    std::vector<std::string> texts = exchange_texts(call, text);
    if (call.signature.operation != Operation::barrier) return texts;
    if (const auto start = common_start(exchange_texts(call, arrival_text()))) wait_for_start(*start);
    return texts;
  }

  // The control plane looks at failure() and tells the other ranks. This ends the kernels that wait for them.
  void spread(std::string_view) noexcept override {
    if (handle_ != nullptr) handle_->give_up();
    if (engines_ == nullptr) return;
    try {
      // Repeated until the destructor: an operation being called now may queue its waits after the streams were found
      // idle.
      releasing_ = std::thread([this] {
        for (; !ended_; std::this_thread::sleep_for(1ms)) {
          if (!engines_->idle()) engines_->release();
        }
      });
    } catch (const std::exception&) {  // no thread available: the destructor waits, within its budget
    }
  }

 private:
  std::vector<std::string> exchange_texts(const Call& call, std::string_view text) {
    const Deadline deadline = Clock::now() + options().limit;
    const std::uint64_t number = ++exchanges_;
    const auto key = [](std::uint64_t at, int rank) { return fmt::format("nccl/{}/{}", at, rank); };
    rendezvous_->set(key(number, rank()), text);
    // A rank that has set text n − 1 has read all texts n − 2: they can be removed.
    if (number > 2) rendezvous_->remove(key(number - 2, rank()));
    std::vector<std::string> texts;
    for (int other = 0; other < size(); ++other) {
      std::optional<std::string> found;
      while (!found) {
        throw_if_failed();
        found = rendezvous_->find(key(number, other), kQuestionLimit);
        if (!found && Clock::now() >= deadline) {
          fail(fmt::format("rank {} has not entered {}, in which rank {} waits for {:.1f} s", other,
                           name_of(call.signature), rank(), std::chrono::duration<double>(options().limit).count()),
               {EndingKind::time_out, other});
        }
      }
      texts.push_back(std::move(*found));
    }
    return texts;
  }

  static std::string text_of(const std::optional<CopyEngineOptions>& copies) {
    if (!copies) return "none";
    return fmt::format("{} slots of {} bytes, from {} bytes on", copies->slots, copies->slot_bytes,
                       copies->least_bytes);
  }

  void open_copy_engines(const CopyEngineOptions& copies) {
    engines_ = std::make_unique<CopyEngines>(rank(), size(), place_, copies,
                                             [this](std::string_view text) { return exchange(text); });
  }

  // After a failure streams may still wait for ranks that are gone, and their owner would block when it synchronizes.
  void end_released() noexcept {
    if (engines_ != nullptr && failed()) {
      const Deadline deadline = Clock::now() + handle_->options().budget;
      while (!engines_->idle() && Clock::now() < deadline) std::this_thread::sleep_for(1ms);
      if (!engines_->idle()) handle_->options().exit();
    }
    ended_ = true;
    if (releasing_.joinable()) releasing_.join();
  }

  void expect_a_gpu_a_rank() {
    if (kind() != device::Kind::cuda) return;
    const device::DeviceProperties gpu = device::properties(place_);
    const std::string mine = this_process().system + " " + gpu.uuid;
    const std::vector<std::string> all = rendezvous_->gather("nccl/gpu", mine, options().limit);
    for (std::size_t other = 0; other < all.size(); ++other) {
      if (static_cast<int>(other) == rank() || all[other] != mine) continue;
      throw Error(
          ErrorKind::usage,
          fmt::format("ranks {} and {} are both on {} ({}): NCCL needs a GPU a rank; start fewer ranks, show this "
                      "process more GPUs, or ask for the backend shm",
                      std::min(rank(), static_cast<int>(other)), std::max(rank(), static_cast<int>(other)),
                      device::to_string(place_), gpu.uuid));
    }
  }

  // Queues the calls that the copy engines take; returns the others.
  std::span<const Call> give_to_copy_engines(std::span<const Call> calls) {
    divided_.assign(calls.begin(), calls.end());
    const auto others = std::stable_partition(divided_.begin(), divided_.end(),
                                              [this](const Call& call) { return engines_->takes(call); });
    if (others != divided_.begin()) engines_->queue({divided_.begin(), others});
    return {others, divided_.end()};
  }

  void give_to_nccl(std::span<const Call> calls) {
    const device::CurrentDevice current(place_);
    handle_->call([&](const nccl::Api& api, nccl::Comm comm) {
      if (calls.size() == 1) return give_one(api, comm, calls[0]);
      library().expect(api.ncclGroupStart(), "ncclGroupStart", comm);
      try {
        for (const Call& call : calls) give_one(api, comm, call);
      } catch (...) {
        // A group belongs to the thread: left open, it would include other communicators' operations.
        api.ncclGroupEnd();
        throw;
      }
      library().expect(api.ncclGroupEnd(), "ncclGroupEnd", comm);
    });
  }

  void give_one(const nccl::Api& api, nccl::Comm comm, const Call& call) {
    const Signature& what = call.signature;
    const auto count = static_cast<std::size_t>(what.count);
    const nccl::Type type = type_of(what.dtype);
    void* stream = call.stream.handle;
    switch (what.operation) {
      case Operation::all_reduce:
        return library().expect(api.ncclAllReduce(call.in, call.out, count, type, op_of(what.reduction), comm, stream),
                                "ncclAllReduce", comm);
      case Operation::reduce_scatter:
        return library().expect(
            api.ncclReduceScatter(call.in, call.out, count, type, op_of(what.reduction), comm, stream),
            "ncclReduceScatter", comm);
      case Operation::all_gather:
        return library().expect(api.ncclAllGather(call.in, call.out, count, type, comm, stream), "ncclAllGather", comm);
      case Operation::broadcast:
        return library().expect(api.ncclBroadcast(call.in, call.out, count, type, what.peer, comm, stream),
                                "ncclBroadcast", comm);
      case Operation::send:
        return library().expect(api.ncclSend(call.in, count, type, what.peer, comm, stream), "ncclSend", comm);
      case Operation::receive:
        return library().expect(api.ncclRecv(call.out, count, type, what.peer, comm, stream), "ncclRecv", comm);
      case Operation::barrier:
      case Operation::exchange:
        break;
    }
    throw Error(ErrorKind::internal, fmt::format("{} is no operation of a stream", name_of(what)));
  }

  // Without a failure: waits until all queued work is done.
  void finish() noexcept {
    try {
      const Deadline deadline = Clock::now() + options().limit;
      while (marked_.pending() > 0 && !failed() && Clock::now() < deadline) {
        marked_.poll();
        std::this_thread::sleep_for(kQueueNap);
      }
      if (engines_ != nullptr && !failed()) {
        while (!engines_->idle() && !failed() && Clock::now() < deadline) std::this_thread::sleep_for(kQueueNap);
        if (engines_->idle()) {
          engines_->close();
          barrier();  // no rank frees its memory before all have closed their views of it
        } else {      // views of other ranks' memory stay while something may still write there
          fail(fmt::format("rank {} ends, and after {:.1f} s its copies to other ranks still wait", rank(),
                           std::chrono::duration<double>(options().limit).count()),
               {EndingKind::time_out, -1});
        }
      }
      if (handle_ != nullptr && !failed()) handle_->end(deadline);
    } catch (const std::exception& error) {
      fail(error.what(), blame_of(error, rank()));
    }
  }

  const NcclLibrary& library() const { return handle_->library(); }

  std::shared_ptr<Rendezvous> rendezvous_;
  device::Place place_;
  MarkedWork marked_;
  std::unique_ptr<NcclHandle> handle_;  // none for one rank alone
  std::unique_ptr<CopyEngines> engines_;
  std::vector<Call> divided_;  // of a group that is being queued
  std::uint64_t exchanges_ = 0;
  std::thread releasing_;
  std::atomic<bool> ended_ = false;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl(std::shared_ptr<Rendezvous> rendezvous, const CommunicatorOptions& options,
                                        const NcclOptions& nccl) {
  return std::make_unique<NcclCommunicator>(std::move(rendezvous), options, nccl);
}

std::function<void(const TensorView& buffer, device::Stream stream)> raw_all_reduce(Communicator& ranks) {
  auto* nccl = dynamic_cast<NcclCommunicator*>(&ranks);
  if (nccl == nullptr || ranks.size() < 2) {
    throw Error(ErrorKind::usage, fmt::format("an all-reduce of NCCL's own was asked for on {} rank(s) of the backend "
                                              "{}: it takes two or more of nccl",
                                              ranks.size(), ranks.backend()));
  }
  return nccl->raw_all_reduce();
}

std::unique_ptr<Communicator> make_alone(device::Place place, const CommunicatorOptions& options) {
  NcclOptions nccl;
  nccl.place = place;
  return std::make_unique<NcclCommunicator>(nullptr, options, nccl);
}

}  // namespace syslab::comm
