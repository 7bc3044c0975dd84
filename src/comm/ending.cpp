#include "comm/ending.hpp"

#include <algorithm>

namespace syslab::comm {

Progress progress_of(const FlightRecorder& recorder) {
  // Operations end in the order of their calls, but for those of the host among them: behind that many that are done
  // there is none that is not.
  constexpr int kEnough = 64;
  int done_in_a_row = 0;
  Progress progress;
  Signature oldest;  // of those that have begun and are not done; number 0: none
  recorder.visit([&](const FlightRecorder::Entry& entry) {
    const Signature& signature = entry.signature;
    const bool begun = entry.state != FlightRecorder::State::queued;
    const bool finished = begun && entry.state != FlightRecorder::State::started;
    if (is_of_host(signature.operation)) {
      progress.host_queued = std::max(progress.host_queued, signature.number);
    } else if (!is_pairwise(signature.operation)) {
      progress.queued = std::max(progress.queued, signature.number);
      if (begun) progress.started = std::max(progress.started, signature.number);
      if (finished) progress.done = std::max(progress.done, signature.number);
    }
    if (begun && !finished) oldest = signature;
    done_in_a_row = finished ? done_in_a_row + 1 : 0;
    return done_in_a_row < kEnough;
  });
  if (oldest.number == 0) return progress;
  progress.waiting = name_of(oldest);
  progress.waiting_number = oldest.number;
  progress.waiting_of_host = is_of_host(oldest.operation);
  progress.waiting_peer = is_pairwise(oldest.operation) ? oldest.peer : -1;
  return progress;
}

WorkerExit exit_code(const Ending& ending, int rank) {
  if (ending.kind == EndingKind::time_out || ending.kind == EndingKind::silence) return WorkerExit::time_out;
  return ending.culprit == rank ? WorkerExit::own_failure : WorkerExit::peer_failure;
}

}  // namespace syslab::comm
