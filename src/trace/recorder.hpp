// Ranges of this program as they happened, on the host's clock.
//
//   Recorder recorder;
//   {
//     const device::Listening listening(recorder);
//     step.run();
//   }
//   recorder.spans();      // forward › layers.0 › attn › attention › …
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/text/units.hpp"
#include "device/cuda/nvtx.hpp"

namespace syslab::trace {

// Time on the host: steady_clock, since its own origin.
Nanoseconds host_now();

// One range. Spans are kept in order of their beginning: a parent stands before its children.
struct Span {
  std::string name;
  device::RangeKind kind = device::RangeKind::scope;
  std::string kernel;                 // of kind kernel: the rung or library that did it
  std::optional<std::size_t> parent;  // its index; none: outermost
  Nanoseconds begin{}, end{};
  bool on_device = false;  // its work was queued on a GPU: begin and end are the host's part
};

// Does something of its own where spans begin and end: marks a stream, tells a library. May not throw.
class SpanTap {
 public:
  virtual ~SpanTap() = default;
  virtual void opened(std::size_t span, device::RangeKind kind, device::Stream stream) noexcept = 0;
  virtual void closed(std::size_t span) noexcept = 0;
};

// Takes some 100 ns a range. Where there is no memory for another one it stops, and says so by lost().
class Recorder final : public device::RangeListener {
 public:
  static constexpr std::size_t kMostSpans = 1 << 20;

  explicit Recorder(SpanTap* tap = nullptr) : tap_(tap) {}
  void begin(const char* name, device::RangeKind kind, device::Stream stream,
             std::string_view kernel) noexcept override;
  void end() noexcept override;

  const std::vector<Span>& spans() const { return spans_; }  // those still open end where they begin
  std::optional<std::size_t> innermost() const;              // of those open now
  std::int64_t lost() const { return lost_; }
  void clear();  // Error(internal) while a span is open

 private:
  static constexpr std::size_t kLost = static_cast<std::size_t>(-1);
  SpanTap* tap_;
  std::vector<Span> spans_;
  std::vector<std::size_t> open_;  // indices, outermost first; kLost for those without a place
  std::int64_t lost_ = 0;
};

}  // namespace syslab::trace
