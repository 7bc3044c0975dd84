#include "trace/cupti_library.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "device/cuda/cuda_library.hpp"

namespace syslab::trace {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

}  // namespace

CuptiLibrary::CuptiLibrary() {
  static constexpr std::array kFiles{"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
  const device::CudaLibrary file(kFiles, "cuda-cupti", "kernels of a trace");
  why = file.why();
  if (!file.found()) return;
  file.look_up("cuptiGetVersion", version);
  file.look_up("cuptiGetResultString", result_string);
  file.look_up("cuptiSubscribe", subscribe);
  file.look_up("cuptiUnsubscribe", unsubscribe);
  file.look_up("cuptiEnableCallback", enable_callback);
  file.look_up("cuptiGetGraphNodeId", graph_node_id);
  file.look_up("cuptiActivityRegisterCallbacks", register_buffers);
  file.look_up("cuptiActivityRegisterTimestampCallback", register_clock);
  file.look_up("cuptiActivityEnable", enable);
  file.look_up("cuptiActivityDisable", disable);
  file.look_up("cuptiActivityFlushAll", flush);
  file.look_up("cuptiActivityGetNextRecord", next_record);
  file.look_up("cuptiActivityGetNumDroppedRecords", dropped_records);
  file.look_up("cuptiActivityPushExternalCorrelationId", push_id);
  file.look_up("cuptiActivityPopExternalCorrelationId", pop_id);
  if (!version || !result_string || !subscribe || !unsubscribe || !enable_callback || !graph_node_id ||
      !register_buffers || !register_clock || !enable || !disable || !flush || !next_record || !dropped_records ||
      !push_id || !pop_id) {
    why = fmt::format("{} lacks a function that a trace needs: it is older than CUDA 12", file.file());
    return;
  }
  // Records are laid out as in the toolkit of the build; a newer library keeps what was there.
  std::uint32_t found = 0;
  version(&found);
  if (found < CUPTI_API_VERSION) {
    why = fmt::format("{} has version {}, and this program was built with {}", file.file(), found, CUPTI_API_VERSION);
  }
}

const CuptiLibrary& cupti_library() {
  static const CuptiLibrary one;
  return one;
}

std::string cupti_told(const char* call, CUptiResult result) {
  const char* text = "unknown error";
  cupti_library().result_string(result, &text);
  return fmt::format("{}: {}", call, text);
}

void CUPTIAPI give_cupti_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;  // as many as fit
}

}  // namespace syslab::trace
