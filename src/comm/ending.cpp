#include "comm/ending.hpp"

#include <algorithm>

namespace syslab::comm {

Progress progress_of(const FlightRecorder& recorder) {
  Progress progress;
  bool waits = false;
  for (const FlightRecorder::Entry& entry : recorder.entries()) {
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
    if (!begun || finished || waits) continue;
    waits = true;
    progress.waiting = name_of(signature);
    progress.waiting_number = signature.number;
    progress.waiting_of_host = is_of_host(signature.operation);
    progress.waiting_peer = is_pairwise(signature.operation) ? signature.peer : -1;
  }
  return progress;
}

WorkerExit exit_code(const Ending& ending, int rank) {
  if (ending.kind == EndingKind::time_out || ending.kind == EndingKind::silence) return WorkerExit::time_out;
  return ending.culprit == rank ? WorkerExit::own_failure : WorkerExit::peer_failure;
}

}  // namespace syslab::comm
