// The records of one case as they come from one worker, and what is left of that worker when it is gone.
#pragma once

#include <optional>
#include <string>

#include "runner/verdict.hpp"
#include "runner/worker_process.hpp"

namespace syslab::runner {

class Intake {
 public:
  // Takes one message as a record into `ending`; progress is given back as well. Error(comm) when it is no record,
  // comes after the end, or is more than a case may leave behind: beyond that a worker has lost its way, and its
  // records would take our memory.
  std::optional<worker::ProgressRecord> take(const std::string& message);
  // The same, with what is wrong as the ending's protocol error. False when the worker is not to be listened to any
  // more.
  bool accept(const std::string& message, std::optional<worker::ProgressRecord>& progress);
  // Waits for the worker's exit and takes what was still on its way.
  void bury(WorkerProcess& worker);

  Ending ending;
  std::string sender = "the worker";  // in what is said against its records

 private:
  worker::Record record_of(const Json& message) const;  // what is wrong with it is said of its sender

  std::size_t record_bytes_ = 0;
};

}  // namespace syslab::runner
