#include "device/other_context.hpp"

#include "device/launch.hpp"
#include "device/runtime.hpp"

namespace syslab::device {
namespace {

class Inside {
 public:
  explicit Inside(void* context) : before_(runtime::enter_context(context)) {}
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { runtime::leave_context(before_); }

 private:
  void* before_;
};

}  // namespace

OtherContext::OtherContext(Place place) {
  const CurrentDevice current(place);
  context_ = runtime::create_context(place.index);
  const Inside inside(context_);
  stream_ = runtime::create_stream();
  // A kernel's first launch in a context loads it, and may wait for all that is queued there: once now, while nothing
  // is.
  runtime::run_nothing(stream_);
  runtime::synchronize_stream(stream_);
}

OtherContext::~OtherContext() {
  {
    const Inside inside(context_);
    runtime::destroy_stream(stream_);
  }
  runtime::destroy_context(context_);
}

void OtherContext::answer(const std::uint32_t* heard, std::uint32_t* answered, std::uint32_t value) {
  const Inside inside(context_);
  runtime::await_word(stream_, heard, value);
  runtime::run_nothing(stream_);
  runtime::write_word(stream_, answered, value);
}

void come_to_turn(Stream stream) {
  if (stream.kind == Kind::cpu) return;
  const CurrentDevice current(stream);
  runtime::run_nothing(stream.handle);
}

}  // namespace syslab::device
