#include "device/cuda/other_context.hpp"

#include <exception>

#include "core/error.hpp"
#include "device/cuda/launch.hpp"
#include "device/cuda/runtime.hpp"

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

OtherContext::OtherContext(Place place, std::size_t bytes) {
  const CurrentDevice current(place);
  context_ = runtime::create_context(place.index);
  try {
    const Inside inside(context_);
    stream_ = runtime::create_stream();
    begin_ = runtime::create_event(true);
    end_ = runtime::create_event(true);
    memory_ = runtime::allocate(bytes);
    if (memory_ == nullptr) throw Error(ErrorKind::oom, "no room on the GPU for a second context's memory");
    // A kernel's first launch in a context loads it, and may wait for all that is queued there: once now, while nothing
    // is.
    runtime::run_nothing(stream_);
    runtime::run_touch(memory_, bytes, stream_);
    runtime::synchronize_stream(stream_);
  } catch (...) {
    close();
    throw;
  }
}

OtherContext::~OtherContext() { close(); }

void OtherContext::close() noexcept {
  try {
    const Inside inside(context_);
    if (stream_ != nullptr) runtime::destroy_stream(stream_);  // waits for it
    for (void* event : {begin_, end_}) {
      if (event != nullptr) runtime::destroy_event(event);
    }
    if (memory_ != nullptr) runtime::release(memory_);
  } catch (const std::exception&) {  // a GPU that is lost holds nothing
  }
  runtime::destroy_context(context_);
}

void OtherContext::answer(const std::uint32_t* heard, std::uint32_t* answered, std::uint32_t value,
                          std::size_t touched) {
  const Inside inside(context_);
  runtime::await_word(stream_, heard, value);
  runtime::run_nothing(stream_);
  runtime::record_event(begin_, stream_);
  runtime::run_touch(memory_, touched, stream_);
  runtime::record_event(end_, stream_);
  runtime::write_word(stream_, answered, value);
}

Nanoseconds OtherContext::took() const {
  const Inside inside(context_);
  runtime::synchronize_event(end_);
  return Nanoseconds(static_cast<std::int64_t>(1e6 * runtime::milliseconds_between(begin_, end_)));
}

void come_to_turn(Stream stream) {
  if (stream.kind == Kind::cpu) return;
  const CurrentDevice current(stream);
  runtime::run_nothing(stream.handle);
}

}  // namespace syslab::device
