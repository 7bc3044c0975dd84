// Kernels and copies as the GPU ran them, told by CUPTI, the library that NVIDIA's profilers stand on. It is opened at
// first use.
//
// How a kernel finds its span: while a span is open, its index is the "external correlation id"
// of this thread, which CUPTI writes down with every call; kernels carry the call's id. A graph is launched by one
// call: there, each node is remembered as it is captured, with the span that is open then, and kernels name their node.
#pragma once

#include <memory>
#include <string>

#include "trace/activity.hpp"

namespace syslab::trace {

class CuptiSession : public SpanTap {
 public:
  // Listens from now on, to this thread's spans. Null with the reason where that cannot be: no library, one of another
  // version, or another tool (Nsight Systems, a debugger) holds the one subscription that there is.
  static std::unique_ptr<CuptiSession> start(std::string& why);

  // Adds what has been told. The device's work must have been waited for.
  virtual void finish(Trace& trace) = 0;
};

}  // namespace syslab::trace
