#include "device/cuda/nvtx.hpp"

#include <utility>

#include "device/cuda/nvtx_push.hpp"

namespace syslab::device {
namespace {

RangeListener*& listener_of_this_thread() {
  thread_local RangeListener* listener = nullptr;
  return listener;
}

}  // namespace

std::string_view to_string(RangeKind kind) {
  switch (kind) {
    case RangeKind::scope:
      return "scope";
    case RangeKind::phase:
      return "phase";
    case RangeKind::layer:
      return "layer";
    case RangeKind::part:
      return "part";
    case RangeKind::kernel:
      return "kernel";
  }
  return "";
}

Listening::Listening(RangeListener& listener) : before_(std::exchange(listener_of_this_thread(), &listener)) {}

Listening::~Listening() { listener_of_this_thread() = before_; }

NvtxRange::NvtxRange(const char* name, RangeKind kind, Stream stream, std::string_view kernel)
    : listener_(listener_of_this_thread()) {
  nvtx_push(name);
  if (listener_ != nullptr) listener_->begin(name, kind, stream, kernel);
}

NvtxRange::~NvtxRange() {
  // Do not report the end to a listener that is no longer (or not yet again) active.
  if (listener_ != nullptr && listener_ == listener_of_this_thread()) listener_->end();
  nvtx_pop();
}

}  // namespace syslab::device
