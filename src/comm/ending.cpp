#include "comm/ending.hpp"

namespace syslab::comm {

Progress progress_of(const FlightRecorder& recorder) {
  Progress progress;
  const FlightRecorder::Standing standing = recorder.standing();
  progress.queued = standing.queued;
  progress.started = standing.started;
  progress.done = standing.done;
  progress.host_queued = standing.host_queued;
  if (!standing.under_way) return progress;
  const Signature& oldest = *standing.under_way;
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
