#include "comm/nccl/handle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <future>
#include <string_view>
#include <utility>

#include "device/cuda/launch.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kAnswerNap = 50us;                       // between questions while something takes time
constexpr std::chrono::milliseconds kLookAtStore{100};  // between looks at whether another rank has failed

// The blocking call that creates a communicator, on its own thread: it waits for all ranks and cannot be cancelled. A
// caller that gives up abandons it; if the call then still creates a communicator, the thread aborts that.
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
    } catch (const std::exception&) {  // no such device: reported like an error of NCCL
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

}  // namespace

NcclHandle::NcclHandle(std::shared_ptr<NcclLibrary> library, NcclOptions options, std::chrono::milliseconds limit,
                       std::function<void()> throw_if_failed)
    : library_(std::move(library)),
      options_(std::move(options)),
      limit_(limit),
      throw_if_failed_(std::move(throw_if_failed)) {}

NcclHandle::~NcclHandle() {
  if (aborting_.joinable()) aborting_.join();
}

void NcclHandle::make(Rendezvous& rendezvous) {
  rank_ = rendezvous.rank();
  size_ = rendezvous.size();
  const Deadline deadline = Clock::now() + limit_;
  const nccl::Api& api = library_->api();
  const device::CurrentDevice current(options_.place);
  nccl::UniqueId id{};
  if (rank_ == 0) {
    library_->expect(api.ncclGetUniqueId(&id), "ncclGetUniqueId");
    rendezvous.set("nccl/id", std::string_view(id.internal, sizeof id.internal));
  }
  const std::string text = rendezvous.get("nccl/id", limit_);
  std::copy_n(text.data(), std::min(text.size(), sizeof id.internal), id.internal);
  nccl::Config config;
  config.blocking = 1;
  config.min_ctas = options_.min_ctas;
  config.max_ctas = options_.max_ctas;
  config.cga_cluster_size = options_.cga_cluster_size;
  const auto start = std::make_shared<Start>();
  start->library = library_;
  std::thread([start, id, config, place = options_.place, size = size_, rank = rank_]() mutable {
    start->run(place, size, id, rank, config);
  }).detach();
  Deadline ask_at = Clock::now() + kLookAtStore;
  while (!start->over()) {
    try {
      throw_if_failed_();
      if (Clock::now() >= deadline) throw in_progress("ncclCommInitRankConfig");
      if (Clock::now() >= ask_at) {
        ask_at = Clock::now() + kLookAtStore;
        static_cast<void>(rendezvous.find("nccl/id", 0ms));  // throws if another rank has failed
      }
    } catch (...) {
      start->leave();
      throw;
    }
    std::this_thread::sleep_for(kAnswerNap);
  }
  {
    const std::lock_guard lock(mutex_);
    comm_ = start->comm;
    library_->expect(start->result, "ncclCommInitRankConfig", comm_);
  }
  settle("ncclCommInitRankConfig", deadline);
  rendezvous.wait_all("nccl/ready", limit_);
}

Error NcclHandle::in_progress(const char* call) const {
  return {ErrorKind::comm,
          fmt::format("{} is still in progress after {:.1f} s: another rank does not take part, or NCCL cannot "
                      "connect (NCCL_DEBUG=INFO says more)",
                      call, std::chrono::duration<double>(limit_).count()),
          call};
}

void NcclHandle::settle(const char* name, Deadline deadline) {
  while (true) {
    nccl::Result state = nccl::kSuccess;
    call([&](const nccl::Api& api, nccl::Comm comm) {
      library_->expect(api.ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError", comm);
      library_->expect(state, name, comm);
    });
    if (state == nccl::kSuccess) return;
    throw_if_failed_();
    if (Clock::now() >= deadline) throw in_progress(name);
    std::this_thread::sleep_for(kAnswerNap);
  }
}

void NcclHandle::expect_no_async_error() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || comm_ == nullptr) return;
  nccl::Result state = nccl::kSuccess;
  library_->expect(library_->api().ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", comm_);
  library_->expect(state, "an operation under way", comm_);
}

void NcclHandle::end(Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return;
    library_->expect(library_->api().ncclCommFinalize(comm_), "ncclCommFinalize", comm_);
  }
  settle("ncclCommFinalize", deadline);
  const std::lock_guard lock(mutex_);
  if (nccl::Comm comm = std::exchange(comm_, nullptr); comm != nullptr) library_->api().ncclCommDestroy(comm);
}

void NcclHandle::give_up() noexcept {
  try {
    std::call_once(given_up_, [this] { aborting_ = std::thread([this] { abort_within_budget(); }); });
  } catch (...) {  // no thread available: only the end of the process frees threads that wait inside NCCL
    options_.exit();
  }
}

// The abort may hang (a wedged GPU, a peer lost at the wrong moment), and so may a thread that holds the lock in NCCL.
void NcclHandle::abort_within_budget() noexcept {
  try {
    std::promise<void> returned;
    std::thread call([this, &returned] {
      {
        const std::lock_guard lock(mutex_);
        if (nccl::Comm comm = std::exchange(comm_, nullptr); comm != nullptr) library_->api().ncclCommAbort(comm);
      }
      returned.set_value();
    });
    if (returned.get_future().wait_for(options_.budget) != std::future_status::ready) {
      fmt::print(stderr, "syslab: rank {} of {}: ncclCommAbort has not returned within {:.1f} s: the process ends\n",
                 rank_, size_, std::chrono::duration<double>(options_.budget).count());
      options_.exit();
    }
    call.join();
  } catch (...) {
    options_.exit();
  }
}

}  // namespace syslab::comm
