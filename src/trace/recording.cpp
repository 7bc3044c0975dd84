#include "trace/recording.hpp"

#include <utility>

#include "core/error.hpp"
#include "device/stream.hpp"

namespace syslab::trace {

Recording::Recording(device::Place place, Source source) : place_(place) {
  SpanTap* tap = nullptr;
  if (place.kind == device::Kind::cuda) {
    if (source == Source::best) cupti_ = CuptiSession::start(why_);
    if (cupti_ == nullptr) events_.emplace(place);
    tap = cupti_ != nullptr ? static_cast<SpanTap*>(cupti_.get()) : &*events_;
  }
  recorder_.emplace(tap);
  listening_.emplace(*recorder_);
}

Trace Recording::finish() {
  if (!listening_) throw Error(ErrorKind::internal, "a recording was finished twice");
  listening_.reset();
  device::synchronize(place_);
  Trace trace;
  trace.spans = recorder_->spans();
  trace.lost = recorder_->lost();
  trace.why = why_;
  if (cupti_ != nullptr) {
    cupti_->finish(trace);
  } else if (events_) {
    events_->finish(trace);
  } else {
    trace.activities = host_activities(trace.spans);
    trace.source = "host clock";
  }
  return trace;
}

}  // namespace syslab::trace
