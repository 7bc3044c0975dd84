// Receives the records of one case from one worker, and the worker's remains when it is gone.
#pragma once

#include <optional>
#include <string>

#include "runner/verdict.hpp"
#include "runner/worker_process.hpp"

namespace syslab::runner {

class Intake {
 public:
  // Adds one message to `ending` as a record; also returns progress. Error(comm) if it is not a record, comes after the
  // end, or exceeds a case's limit: such a worker is out of control, and its records would fill our memory.
  std::optional<worker::ProgressRecord> take(const std::string& message);
  // The same, but stores an error as the ending's wire_error. False if the worker must not be listened to any more.
  bool accept(const std::string& message, std::optional<worker::ProgressRecord>& progress);
  // Waits for the worker's exit and receives the messages still in transit.
  void bury(WorkerProcess& worker);

  Ending ending;
  std::string sender = "the worker";  // in what is said against its records

 private:
  worker::Record record_of(const Json& message) const;  // what is wrong with it is said of its sender

  std::size_t record_bytes_ = 0;
};

}  // namespace syslab::runner
