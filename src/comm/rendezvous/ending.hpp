// Why the ranks of a job end before their time, and how far each had come.
#pragma once

#include <cstdint>
#include <string>

#include "comm/failure.hpp"
#include "comm/flight_recorder.hpp"

namespace syslab::comm {

// How far a rank is. Numbers are those of signatures (comm/call.hpp), which all ranks count alike.
struct Progress {
  std::uint64_t step = 0;
  std::string phase;
  // The last that was queued, begun and done among all collectives; the last begun among all operations of the host.
  std::uint64_t queued = 0, started = 0, done = 0, host_queued = 0;
  // The oldest that has begun and is not done; empty: none is under way. One that has not begun waits for work of this
  // rank, which may take its time.
  std::string waiting;
  std::uint64_t waiting_number = 0;
  bool waiting_of_host = false;
  int waiting_peer = -1;  // of a send or receive; then its number is that pair's own
};

// From the recorder of a communicator; step and phase are the caller's.
Progress progress_of(const FlightRecorder& recorder);

struct Ending : Blame {
  std::string reason;     // whole: names rank, operation and number as far as they are known
  std::string operation;  // "all_reduce #17 (gradient, bucket 3)", empty: none was under way
  std::uint64_t number = 0;
};

}  // namespace syslab::comm
