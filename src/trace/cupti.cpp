#include "trace/cupti.hpp"

#include <cupti.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "trace/cupti_library.hpp"
#include "trace/cupti_records.hpp"

namespace syslab::trace {
namespace {

constexpr std::size_t kMostRecords = std::size_t{1} << 20;

const char* copy_name(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "device to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "device to another device";
    default:
      return "other";
  }
}

class Session;

// CUPTI's buffer callbacks take no user data; there is one session at a time, and this is it.
std::mutex active_mutex;
Session* active = nullptr;

class Session final : public CuptiSession {
 public:
  ~Session() override { stop(); }

  std::string begin() {
    const CuptiLibrary& cupti = cupti_library();
    if (!cupti.why.empty()) return cupti.why;
    {
      const std::lock_guard lock(active_mutex);
      if (active != nullptr) return "another recording of this process is going on";
      active = this;
    }
    const CUptiResult subscribed = cupti.subscribe(&subscriber_, on_resource, this);
    if (subscribed != CUPTI_SUCCESS) {
      forget();
      if (subscribed == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
        return "another profiler or debugger is attached, and CUPTI serves one at a time";
      }
      return cupti_told("cuptiSubscribe", subscribed);
    }
    subscribed_ = true;
    std::string why;
    const auto attempt = [&](const char* call, CUptiResult result) {
      if (why.empty() && result != CUPTI_SUCCESS) why = cupti_told(call, result);
    };
    for (const CUpti_CallbackId id : {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED}) {
      attempt("cuptiEnableCallback", cupti.enable_callback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, id));
    }
    // The spans' clock, before anything is timed.
    attempt("cuptiActivityRegisterTimestampCallback", cupti.register_clock(clock));
    attempt("cuptiActivityRegisterCallbacks", cupti.register_buffers(give_cupti_buffer, on_buffer_full));
    for (const CUpti_ActivityKind kind : kKinds) attempt("cuptiActivityEnable", cupti.enable(kind));
    if (!why.empty()) stop();
    return why;
  }

  void opened(std::size_t span, device::RangeKind, device::Stream) noexcept override {
    cupti_library().push_id(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, span + 1);
    try {
      open_.push_back(span);
    } catch (...) {
      lost_open_ = true;  // nodes that are captured from now on have no span
    }
  }
  void closed(std::size_t) noexcept override {
    std::uint64_t last = 0;
    cupti_library().pop_id(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
    if (!open_.empty()) open_.pop_back();
  }

  void finish(Trace& trace) override {
    cupti_library().flush(0);
    stop();
    const std::lock_guard lock(mutex_);
    trace.activities = join(records_, calls_);
    trace.graph_nodes = nodes_.spans();
    trace.source = "CUPTI";
    trace.lost += lost_;
  }

 private:
  static constexpr std::array kKinds{
      CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
      // External ids are written down with calls: those must be recorded, too.
      CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

  static std::uint64_t CUPTIAPI clock() { return static_cast<std::uint64_t>(host_now().count()); }

  static void CUPTIAPI on_buffer_full(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                                      std::size_t valid) {
    const std::lock_guard lock(active_mutex);
    if (active != nullptr) active->take(context, stream, buffer, valid);
    std::free(buffer);
  }

  void take(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t valid) noexcept {
    const CuptiLibrary& cupti = cupti_library();
    const std::lock_guard lock(mutex_);
    CUpti_Activity* record = nullptr;
    while (cupti.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
      try {
        if (records_.size() + calls_.size() >= kMostRecords) {
          ++lost_;
        } else {
          take(*record);
        }
      } catch (...) {
        ++lost_;
      }
    }
    std::size_t dropped = 0;
    if (cupti.dropped_records(context, stream, &dropped) == CUPTI_SUCCESS) {
      lost_ += static_cast<std::int64_t>(dropped);
    }
  }

  template <typename Record>
  void take(const Record& record, ActivityKind kind, std::string name, std::uint64_t bytes) {
    records_.push_back({.kind = kind,
                        .name = std::move(name),
                        .begin_ns = static_cast<std::int64_t>(record.start),
                        .end_ns = static_cast<std::int64_t>(record.end),
                        .stream = record.streamId,
                        .correlation = record.correlationId,
                        .graph_node = record.graphNodeId,
                        .bytes = static_cast<std::int64_t>(bytes)});
  }

  void take(const CUpti_Activity& record) {
    switch (record.kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel10&>(record);
        return take(kernel, ActivityKind::kernel, readable_kernel_name(kernel.name), 0);
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(record);
        return take(copy, ActivityKind::copy, copy_name(copy.copyKind), copy.bytes);
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& fill = reinterpret_cast<const CUpti_ActivityMemset4&>(record);
        return take(fill, ActivityKind::fill, "memset", fill.bytes);
      }
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const auto& call = reinterpret_cast<const CUpti_ActivityExternalCorrelation&>(record);
        calls_.push_back({call.correlationId, call.externalId});
        return;
      }
      default:
        return;
    }
  }

  static void CUPTIAPI on_resource(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
    if (domain != CUPTI_CB_DOMAIN_RESOURCE) return;
    const auto* graph =
        static_cast<const CUpti_GraphData*>(static_cast<const CUpti_ResourceData*>(data)->resourceDescriptor);
    static_cast<Session*>(user)->node(id, *graph);
  }

  void node(CUpti_CallbackId id, const CUpti_GraphData& graph) noexcept {
    const CuptiLibrary& cupti = cupti_library();
    std::uint64_t node = 0, original = 0;
    if (cupti.graph_node_id(graph.node, &node) != CUPTI_SUCCESS) return;
    const std::lock_guard lock(mutex_);
    try {
      if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
        const bool known = std::this_thread::get_id() == thread_ && !open_.empty() && !lost_open_;
        nodes_.created(node, known ? std::optional(open_.back()) : std::nullopt);
      } else if (cupti.graph_node_id(graph.originalNode, &original) == CUPTI_SUCCESS) {
        nodes_.cloned(original, node);
      }
    } catch (...) {
      ++lost_;
    }
  }

  void stop() noexcept {
    const CuptiLibrary& cupti = cupti_library();
    if (subscribed_) {
      for (const CUpti_ActivityKind kind : kKinds) cupti.disable(kind);
      cupti.unsubscribe(subscriber_);
      subscribed_ = false;
    }
    forget();
  }

  void forget() noexcept {
    const std::lock_guard lock(active_mutex);
    if (active == this) active = nullptr;
  }

  const std::thread::id thread_ = std::this_thread::get_id();
  CUpti_SubscriberHandle subscriber_ = nullptr;
  bool subscribed_ = false, lost_open_ = false;
  std::vector<std::size_t> open_;  // spans, of this thread alone
  std::mutex mutex_;               // of what follows: buffers come from a thread of CUPTI's
  std::vector<DeviceRecord> records_;
  std::vector<CorrelationRecord> calls_;
  GraphNodes nodes_;
  std::int64_t lost_ = 0;
};

}  // namespace

std::unique_ptr<CuptiSession> CuptiSession::start(std::string& why) {
  auto session = std::make_unique<Session>();
  why = session->begin();
  if (!why.empty()) return nullptr;
  return session;
}

}  // namespace syslab::trace
