#include "comm/nccl_communicator.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "comm/agree.hpp"
#include "comm/ending.hpp"
#include "comm/nccl_library.hpp"
#include "comm/process_name.hpp"
#include "comm/socket.hpp"
#include "core/error.hpp"
#include "device/event.hpp"
#include "device/launch.hpp"
#include "device/properties.hpp"
#include "device/stream.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr auto kNap = 50us;             // between questions while something takes time
constexpr milliseconds kStoreNap{100};  // of one question to the store, between looks at whether all have failed
constexpr std::size_t kManyPending = 64;

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
  NcclCommunicator(std::shared_ptr<Store> store, const CommunicatorOptions& options, NcclOptions nccl)
      : Communicator(store == nullptr ? 0 : store->rank(), store == nullptr ? 1 : store->size(), options),
        store_(std::move(store)),
        nccl_(std::move(nccl)) {
    if (!nccl_.exit) nccl_.exit = [] { ::_exit(static_cast<int>(Fault::peer)); };
    if (size() == 1) return;
    library_ = std::make_shared<NcclLibrary>(nccl_.library);
    agree(*store_, "nccl", {{"NCCL version", library_->version()}, {"multicast", library_->nvls()}}, options.limit);
    expect_a_gpu_a_rank();
    if (rank() == 0) {
      fmt::print(stderr, "syslab: rank 0 of {}: NCCL {} from {}; {}\n", size(), library_->version(), library_->file(),
                 library_->nvls_and_by_whom());
    }
    try {
      initialise();
    } catch (...) {
      give_up();
      if (aborting_.joinable()) aborting_.join();
      throw;
    }
  }

  ~NcclCommunicator() override {
    finish();
    part();
    if (aborting_.joinable()) aborting_.join();
  }

  std::function<void(const TensorView&, device::Stream)> raw_all_reduce() {
    return [this](const TensorView& buffer, device::Stream stream) {
      const nccl::Result given =
          library_->api().ncclAllReduce(buffer.data, buffer.data, static_cast<std::size_t>(buffer.elements()),
                                        nccl::kFloat32, nccl::kSum, comm_, stream.handle);
      if (given != nccl::kInProgress) library_->expect(given, "ncclAllReduce", comm_);
      settle("ncclAllReduce", Clock::now() + options().limit);
    };
  }

  std::string_view backend() const override { return "nccl"; }
  device::Kind kind() const override { return nccl_.place.kind; }

  void look() noexcept override {
    try {
      if (failed()) return;
      poll();
      expect_no_async_error();
    } catch (const std::exception& error) {
      fail(fmt::format("rank {}: {}", rank(), error.what()), blame_of(error, rank()));
    }
  }

 protected:
  void queue(std::span<const Call> calls) override {
    try {
      Pending& pending = begin(calls);
      give_to_nccl(calls);
      settle(to_string(calls[0].signature.operation).data(), Clock::now() + options().limit);
      end(pending);
    } catch (const std::exception& error) {
      // The lock is free again: failing ends in ncclCommAbort, which takes it.
      for (const Call& call : calls) recorded().end(call.record, false);
      fail(fmt::format("rank {}: {}: {}", rank(), name_of(calls[0].signature), error.what()), blame_of(error, rank()));
      throw_if_failed();
    }
  }

  void queue_alone(const Call& call) override {
    Pending& pending = begin({&call, 1});
    copy_alone(call);
    end(pending);
  }

  void wait_until_done(std::uint64_t work) override {
    const Deadline deadline = Clock::now() + options().limit;
    Deadline ask_at = Clock::now();
    while (true) {
      poll();
      const bool over = done() >= work;
      if (over) look();  // what an error ended has its end, too
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
      std::this_thread::sleep_for(kNap);
    }
  }

  std::vector<std::string> exchange_now(const Call& call, std::string_view text) override {
    const Deadline deadline = Clock::now() + options().limit;
    const auto key = [&](int rank) { return fmt::format("nccl/{}/{}", call.signature.number, rank); };
    store_->set(key(rank()), text);
    std::vector<std::string> texts;
    for (int other = 0; other < size(); ++other) {
      std::optional<std::string> found;
      while (!found) {
        throw_if_failed();
        found = store_->find(key(other), kStoreNap);
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

  // The other ranks are told by the control plane, which looks at failure(); here the kernels that wait for them end.
  void spread(std::string_view) noexcept override { give_up(); }

 private:
  // Work of NCCL's in a stream, between two marks.
  struct Pending {
    std::vector<Call> calls;
    device::Event start, end;
    bool begun = false;
    explicit Pending(device::Place place) : start(place), end(place) {}
  };

  void expect_a_gpu_a_rank() {
    if (kind() != device::Kind::cuda) return;
    const device::DeviceProperties gpu = device::properties(nccl_.place);
    const std::string mine = this_process().system + " " + gpu.uuid;
    const std::vector<std::string> all = store_->gather("nccl/gpu", mine, options().limit);
    for (std::size_t other = 0; other < all.size(); ++other) {
      if (static_cast<int>(other) == rank() || all[other] != mine) continue;
      throw Error(
          ErrorKind::usage,
          fmt::format("ranks {} and {} are both on {} ({}): NCCL needs a GPU a rank; start fewer ranks, show this "
                      "process more GPUs, or ask for the backend shm",
                      std::min(rank(), static_cast<int>(other)), std::max(rank(), static_cast<int>(other)),
                      device::to_string(nccl_.place), gpu.uuid));
    }
  }

  void initialise() {
    const Deadline deadline = Clock::now() + options().limit;
    const nccl::Api& api = library_->api();
    const device::CurrentDevice current(nccl_.place);
    nccl::UniqueId id{};
    if (rank() == 0) {
      library_->expect(api.ncclGetUniqueId(&id), "ncclGetUniqueId");
      store_->set("nccl/id", std::string_view(id.internal, sizeof id.internal));
    }
    const std::string text = store_->get("nccl/id", options().limit);
    std::copy_n(text.data(), std::min(text.size(), sizeof id.internal), id.internal);
    nccl::Config config;
    config.blocking = 1;
    config.min_ctas = nccl_.min_ctas;
    config.max_ctas = nccl_.max_ctas;
    config.cga_cluster_size = nccl_.cga_cluster_size;
    const auto start = std::make_shared<Start>();
    start->library = library_;
    std::thread([start, id, config, place = nccl_.place, size = size(), rank = rank()]() mutable {
      start->run(place, size, id, rank, config);
    }).detach();
    Deadline ask_at = Clock::now() + kStoreNap;
    while (!start->over()) {
      try {
        throw_if_failed();
        if (Clock::now() >= deadline) throw in_progress("ncclCommInitRankConfig");
        if (Clock::now() >= ask_at) {
          ask_at = Clock::now() + kStoreNap;
          static_cast<void>(store_->find("nccl/id", 0ms));  // throws where another rank has failed
        }
      } catch (...) {
        start->leave();
        throw;
      }
      std::this_thread::sleep_for(kNap);
    }
    {
      const std::lock_guard lock(mutex_);
      comm_ = start->comm;
      library_->expect(start->result, "ncclCommInitRankConfig", comm_);
    }
    settle("ncclCommInitRankConfig", deadline);
    store_->wait_all("nccl/ready", options().limit);
  }

  // The blocking call that makes a communicator, on a thread of its own: it waits for all ranks and cannot be called
  // off. Who gives up leaves it behind; what it then still makes, it aborts.
  struct Start {
    std::shared_ptr<NcclLibrary> library;
    nccl::Comm comm = nullptr;
    nccl::Result result = nccl::kInProgress;

    void run(device::Place place, int size, nccl::UniqueId id, int rank, nccl::Config config) {
      nccl::Comm made = nullptr;
      nccl::Result given = nccl::kInternalError;
      try {
        const device::CurrentDevice current(place);
        given = library->api().ncclCommInitRankConfig(&made, size, id, rank, &config);
      } catch (const std::exception&) {  // no such device: an error of NCCL's like others
      }
      const std::lock_guard lock(mutex_);
      if (left_ && made != nullptr) library->api().ncclCommAbort(made);
      comm = made;
      result = given;
      over_ = true;
    }
    bool over() const {
      const std::lock_guard lock(mutex_);
      return over_;
    }
    void leave() {
      const std::lock_guard lock(mutex_);
      if (over_ && comm != nullptr) library->api().ncclCommAbort(std::exchange(comm, nullptr));
      left_ = true;
    }

   private:
    mutable std::mutex mutex_;
    bool over_ = false, left_ = false;
  };

  Error in_progress(const char* call) const {
    return {ErrorKind::comm,
            fmt::format("{} is still in progress after {:.1f} s: another rank does not take part, or NCCL cannot "
                        "connect (NCCL_DEBUG=INFO says more)",
                        call, std::chrono::duration<double>(options().limit).count()),
            call};
  }

  // Where NCCL_COMM_BLOCKING=0 makes communicators non-blocking all the same, they answer "in progress": asks until
  // that is over. The lock is free between questions.
  void settle(const char* call, Deadline deadline) {
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        if (comm_ == nullptr) throw_if_failed();
        nccl::Result state = nccl::kSuccess;
        library_->expect(library_->api().ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", comm_);
        library_->expect(state, call, comm_);
        if (state == nccl::kSuccess) return;
      }
      throw_if_failed();
      if (Clock::now() >= deadline) throw in_progress(call);
      std::this_thread::sleep_for(kNap);
    }
  }

  // Asks nothing while another thread is inside NCCL: it may be stuck there, and whoever watches over it must not be.
  void expect_no_async_error() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || comm_ == nullptr) return;
    nccl::Result state = nccl::kSuccess;
    library_->expect(library_->api().ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", comm_);
    library_->expect(state, "an operation under way", comm_);
  }

  void give_to_nccl(std::span<const Call> calls) {
    const nccl::Api& api = library_->api();
    const device::CurrentDevice current(nccl_.place);
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) throw_if_failed();
    if (calls.size() == 1) return give_one(api, calls[0]);
    library_->expect(api.ncclGroupStart(), "ncclGroupStart", comm_);
    try {
      for (const Call& call : calls) give_one(api, call);
    } catch (...) {
      api.ncclGroupEnd();  // a group is its thread's: left open, it would take in other communicators' operations
      throw;
    }
    library_->expect(api.ncclGroupEnd(), "ncclGroupEnd", comm_);
  }

  void give_one(const nccl::Api& api, const Call& call) {
    const Signature& what = call.signature;
    const auto count = static_cast<std::size_t>(what.count);
    const nccl::Type type = type_of(what.dtype);
    void* stream = call.stream.handle;
    switch (what.operation) {
      case Operation::all_reduce:
        return library_->expect(api.ncclAllReduce(call.in, call.out, count, type, op_of(what.reduction), comm_, stream),
                                "ncclAllReduce", comm_);
      case Operation::reduce_scatter:
        return library_->expect(
            api.ncclReduceScatter(call.in, call.out, count, type, op_of(what.reduction), comm_, stream),
            "ncclReduceScatter", comm_);
      case Operation::all_gather:
        return library_->expect(api.ncclAllGather(call.in, call.out, count, type, comm_, stream), "ncclAllGather",
                                comm_);
      case Operation::broadcast:
        return library_->expect(api.ncclBroadcast(call.in, call.out, count, type, what.peer, comm_, stream),
                                "ncclBroadcast", comm_);
      case Operation::send:
        return library_->expect(api.ncclSend(call.in, count, type, what.peer, comm_, stream), "ncclSend", comm_);
      case Operation::receive:
        return library_->expect(api.ncclRecv(call.out, count, type, what.peer, comm_, stream), "ncclRecv", comm_);
      case Operation::barrier:
      case Operation::exchange:
        break;
    }
    throw Error(ErrorKind::internal, fmt::format("{} is no operation of a stream", name_of(what)));
  }

  // The mark before an operation; it waits for the one before it, should that be in another stream.
  Pending& begin(std::span<const Call> calls) {
    if (pending_count() > kManyPending) poll();
    const std::lock_guard lock(pending_mutex_);
    const device::Stream stream = calls[0].stream;
    if (!pending_.empty() && pending_.back()->calls[0].stream.handle != stream.handle)
      pending_.back()->end.before(stream);
    std::unique_ptr<Pending> pending;
    if (spare_.empty()) {
      pending = std::make_unique<Pending>(nccl_.place);
    } else {
      pending = std::move(spare_.back());
      spare_.pop_back();
    }
    pending->calls.assign(calls.begin(), calls.end());
    pending->begun = false;
    pending->start.record(stream);
    opened_ = std::move(pending);
    return *opened_;
  }

  void end(Pending& pending) {
    const std::lock_guard lock(pending_mutex_);
    pending.end.record(pending.calls[0].stream);
    pending_.push_back(std::move(opened_));
  }

  // Does nothing while another thread is at it, which may be held up by a device that does not answer.
  void poll() {
    const std::unique_lock lock(pending_mutex_, std::try_to_lock);
    if (!lock) return;
    while (!pending_.empty()) {
      Pending& first = *pending_.front();
      if (!first.begun && first.start.done()) {
        first.begun = true;
        for (const Call& call : first.calls) recorded().start(call.record);
      }
      // What was aborted comes to its end as well, and is not done.
      if (!first.begun || !first.end.done() || failed()) return;
      for (const Call& call : first.calls) recorded().end(call.record, true);
      done_ = std::max(done_, first.calls.back().work);
      spare_.push_back(std::move(pending_.front()));
      pending_.pop_front();
    }
  }

  std::size_t pending_count() const {
    const std::lock_guard lock(pending_mutex_);
    return pending_.size();
  }
  std::uint64_t done() const {
    const std::lock_guard lock(pending_mutex_);
    return done_;
  }

  // ncclCommAbort. Nobody waits for it here: whoever found the failure has others to tell of it.
  void give_up() noexcept {
    if (library_ == nullptr) return;
    try {
      aborting_ = std::thread([this] { abort_within_budget(); });
    } catch (...) {  // no thread to be had: nothing but the end of the process frees who waits inside NCCL
      nccl_.exit();
    }
  }

  // It may hang (a wedged GPU, a peer that is gone at the wrong moment), and so may whoever holds the lock inside NCCL.
  void abort_within_budget() noexcept {
    try {
      std::promise<void> returned;
      std::thread call([this, &returned] {
        {
          const std::lock_guard lock(mutex_);
          if (nccl::Comm comm = std::exchange(comm_, nullptr); comm != nullptr) library_->api().ncclCommAbort(comm);
        }
        returned.set_value();
      });
      if (returned.get_future().wait_for(nccl_.budget) != std::future_status::ready) {
        fmt::print(stderr, "syslab: rank {} of {}: ncclCommAbort has not returned within {:.1f} s: the process ends\n",
                   rank(), size(), std::chrono::duration<double>(nccl_.budget).count());
        nccl_.exit();
      }
      call.join();
    } catch (...) {
      nccl_.exit();
    }
  }

  // In peace: what was queued is done, then all ranks finalise, then each destroys its own.
  void finish() noexcept {
    try {
      const Deadline deadline = Clock::now() + options().limit;
      while (pending_count() > 0 && !failed() && Clock::now() < deadline) {
        poll();
        std::this_thread::sleep_for(kNap);
      }
      if (library_ == nullptr || failed()) return;
      {
        const std::lock_guard lock(mutex_);
        if (comm_ == nullptr) return;
        library_->expect(library_->api().ncclCommFinalize(comm_), "ncclCommFinalize", comm_);
      }
      settle("ncclCommFinalize", deadline);
      const std::lock_guard lock(mutex_);
      if (nccl::Comm comm = std::exchange(comm_, nullptr); comm != nullptr) library_->api().ncclCommDestroy(comm);
    } catch (const std::exception& error) {
      fail(error.what(), blame_of(error, rank()));
    }
  }

  std::shared_ptr<Store> store_;
  NcclOptions nccl_;
  std::shared_ptr<NcclLibrary> library_;
  std::mutex mutex_;  // of every call that takes comm_: an abort must find nobody inside
  nccl::Comm comm_ = nullptr;
  mutable std::mutex pending_mutex_;
  std::deque<std::unique_ptr<Pending>> pending_;
  std::vector<std::unique_ptr<Pending>> spare_;
  std::unique_ptr<Pending> opened_;
  std::uint64_t done_ = 0;
  std::thread aborting_;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl(std::shared_ptr<Store> store, const CommunicatorOptions& options,
                                        const NcclOptions& nccl) {
  return std::make_unique<NcclCommunicator>(std::move(store), options, nccl);
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
