#include "comm/rendezvous/ending.hpp"

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

Fault fault_of(const Blame& blame, int rank) {
  if (blame.kind == EndingKind::disagreement) return Fault::mismatch;
  const bool late = blame.kind == EndingKind::time_out || blame.kind == EndingKind::silence;
  if (blame.culprit == rank) return late ? Fault::awaited : Fault::own;
  return late ? Fault::late : Fault::peer;
}

Blame blame_of(const std::exception& error, int rank) {
  const auto* told = dynamic_cast<const RankError*>(&error);
  if (told == nullptr) return {EndingKind::failure, rank};
  switch (told->fault()) {
    case Fault::peer:
      return {EndingKind::failure, -1};
    case Fault::late:
      return {EndingKind::time_out, -1};
    case Fault::mismatch:
      return {EndingKind::disagreement, -1};
    default:
      return {EndingKind::failure, rank};
  }
}

}  // namespace syslab::comm
