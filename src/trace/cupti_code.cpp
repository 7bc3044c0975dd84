#include <cupti.h>
#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "trace/code_watch.hpp"
#include "trace/cupti_library.hpp"

namespace syslab::trace {
namespace {

constexpr std::size_t kMostLaunches = std::size_t{1} << 16;

class Watch;

// CUPTI's buffer callbacks take no user data.
std::mutex listening_mutex;
Watch* listening = nullptr;

class Watch final : public CodeWatch {
 public:
  ~Watch() override { stop(); }

  std::string listen() {
    const CuptiLibrary& cupti = cupti_library();
    if (!cupti.why.empty()) return cupti.why;
    {
      const std::lock_guard lock(listening_mutex);
      if (listening != nullptr) return "another watch of this process listens";
      listening = this;
    }
    if (const CUptiResult result = cupti.subscribe(&subscriber_, on_resource, this); result != CUPTI_SUCCESS) {
      stop();
      return cupti_told("cuptiSubscribe", result);
    }
    subscribed_ = true;
    CUptiResult result =
        cupti.enable_callback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED);
    const char* call = "cuptiEnableCallback";
    if (result == CUPTI_SUCCESS) {
      call = "cuptiActivityRegisterCallbacks";
      result = cupti.register_buffers(give_cupti_buffer, on_buffer_full);
    }
    if (result == CUPTI_SUCCESS) return {};
    stop();
    return cupti_told(call, result);
  }

  void begin() override {
    {
      const std::lock_guard lock(mutex_);
      launches_.clear();
      lost_ = 0;
    }
    // May load a module of CUPTI's own, or hand over a buffer: both come back to us, and take the lock.
    const CUptiResult result = cupti_library().enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    why_ = result == CUPTI_SUCCESS ? "" : cupti_told("cuptiActivityEnable", result);
  }

  CodeOfCall end() override {
    const CuptiLibrary& cupti = cupti_library();
    cupti.flush(0);
    cupti.disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    const std::lock_guard lock(mutex_);
    if (why_.empty() && lost_ > 0) why_ = fmt::format("CUPTI lost {} launches", lost_);
    CodeOfCall code;
    code.why = why_;
    return why_.empty() ? loaded_.of(launches_) : code;
  }

 private:
  static void CUPTIAPI on_resource(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
    if (domain != CUPTI_CB_DOMAIN_RESOURCE || id != CUPTI_CBID_RESOURCE_MODULE_LOADED) return;
    const auto* module =
        static_cast<const CUpti_ModuleResourceData*>(static_cast<const CUpti_ResourceData*>(data)->resourceDescriptor);
    if (module == nullptr || module->pCubin == nullptr) return;
    auto* const watch = static_cast<Watch*>(user);
    const std::lock_guard lock(watch->mutex_);
    try {
      watch->loaded_.add(std::string(module->pCubin, module->cubinSize));  // it is theirs, and gone after this
    } catch (...) {
      ++watch->lost_;  // a kernel of it is then of no known module
    }
  }

  static void CUPTIAPI on_buffer_full(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                                      std::size_t valid) {
    const std::lock_guard lock(listening_mutex);
    if (listening != nullptr) listening->take(context, stream, buffer, valid);
    std::free(buffer);
  }

  void take(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t valid) noexcept {
    const CuptiLibrary& cupti = cupti_library();
    const std::lock_guard lock(mutex_);
    CUpti_Activity* record = nullptr;
    while (cupti.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
      if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
      const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel10&>(*record);
      try {
        if (launches_.size() >= kMostLaunches) {
          ++lost_;
          continue;
        }
        launches_.push_back(
            {.symbol = kernel.name == nullptr ? "" : kernel.name,
             .grid = {kernel.gridX, kernel.gridY, kernel.gridZ},
             .block = {kernel.blockX, kernel.blockY, kernel.blockZ},
             .cluster = {static_cast<std::int32_t>(kernel.clusterX), static_cast<std::int32_t>(kernel.clusterY),
                         static_cast<std::int32_t>(kernel.clusterZ)},
             .shared_bytes = kernel.staticSharedMemory + kernel.dynamicSharedMemory,
             .registers = kernel.registersPerThread,
             .order = kernel.correlationId});
      } catch (...) {
        ++lost_;
      }
    }
    std::size_t dropped = 0;
    if (cupti.dropped_records(context, stream, &dropped) == CUPTI_SUCCESS) lost_ += dropped;
  }

  void stop() noexcept {
    if (subscribed_) cupti_library().unsubscribe(subscriber_);
    subscribed_ = false;
    const std::lock_guard lock(listening_mutex);
    if (listening == this) listening = nullptr;
  }

  CUpti_SubscriberHandle subscriber_ = nullptr;
  bool subscribed_ = false;
  std::mutex mutex_;  // of what follows: buffers come from a thread of CUPTI's
  LoadedCode loaded_;
  std::vector<RanKernel> launches_;
  std::size_t lost_ = 0;
  std::string why_;
};

}  // namespace

std::unique_ptr<CodeWatch> CodeWatch::start(std::string& why) {
  auto watch = std::make_unique<Watch>();
  why = watch->listen();
  if (!why.empty()) return nullptr;
  return watch;
}

}  // namespace syslab::trace
