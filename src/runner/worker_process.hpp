// One worker process: spawns it, exchanges greetings, sends, receives with a deadline, kills and reaps it. The caller
// interprets its messages: an attempt reads records of a case, a comparison reads bursts.
//
//   WorkerProcess worker({command, environment});
//   worker.send(worker::to_json(request));
//   while (true) {
//     const Heard heard = worker.next(deadline, watch);
//     if (heard.state != Heard::State::message) break;
//     use(parse_message(heard.text));
//   }
//   const Remains remains = worker.bury();
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/process/pipe.hpp"
#include "core/process/process.hpp"
#include "core/text/json.hpp"
#include "runner/interruption.hpp"
#include "runner/places.hpp"
#include "runner/standstill.hpp"

namespace syslab::runner {

using Clock = std::chrono::steady_clock;

// Runs while waiting for workers: notices signals, and calls a heartbeat every 5 s. One object may serve several
// workers in turn.
class Watch {
 public:
  // `heartbeat` may be empty; its exceptions propagate from WorkerProcess::next.
  explicit Watch(const Interruption& interruption, std::function<void()> heartbeat = {});

  const Interruption& interruption() const { return interruption_; }
  Clock::time_point next_heartbeat() const { return next_; }
  void tick(Clock::time_point now);

 private:
  const Interruption& interruption_;
  std::function<void()> heartbeat_;
  Clock::time_point next_;
};

// The outcome of one wait.
struct Heard {
  enum class State {
    message,      // `text` is one frame
    late,         // the deadline passed; the worker lives
    interrupted,  // the watch's interruption has a signal; the worker lives
    gone,         // it closed its pipe or died; bury() says how
    broken,       // it violates the wire format, `text` says how
  };
  State state = State::gone;
  std::string text;
};

// What is left of a worker that has ended.
struct Remains {
  ExitStatus exit;
  std::vector<std::string> late;  // frames still in transit when it ended
  std::string broken;             // what followed them is no frame
  std::size_t pending_bytes = 0;  // of a frame that never became whole
  std::string stderr_tail, last_lines;
};

// A frame's text as a message; Error(comm) when it is no JSON object.
Json parse_message(const std::string& text);

class WorkerProcess;

// Error(comm) when the worker, which has been heard, says that it does not serve what a comparison is made of.
void require_bursts(const WorkerProcess& worker);

class WorkerProcess {
 public:
  struct Command {
    std::vector<std::string> argv;
    std::map<std::string, std::string> environment;  // added to ours
    Places* places = nullptr;                        // unless it runs on our host, and
    int rank = 0;                                    // the rank of its place
  };

  // Spawns and says hello. Throws Error(internal) if the program cannot be started (could_not_start tells that from
  // other errors).
  explicit WorkerProcess(const Command& command);
  ~WorkerProcess();  // kills it, if it has not ended, and removes what it could not remove then
  static bool could_not_start(const Error& error);

  // Does not wait for the greeting, and reports no error if the worker is gone: its exit explains more than our failed
  // write.
  void send(const Json& message);

  // Waits for the next message after the greeting, which is looked at here. Drains standard error meanwhile.
  Heard next(Clock::time_point deadline, Watch& watch);

  // It is alive and has no unread messages. False before its greeting was read.
  bool is_idle();

  // The next available message, without waiting; nothing if there is none. For waiting for several workers at once on
  // these descriptors (error_output: -1 once it is closed).
  std::optional<Heard> heard();
  int output() const { return process_->from_child(); }
  int error_output() const { return errors_open_ ? process_->error_output() : -1; }

  // The last lines that it printed to standard error since the last call of forget_output().
  std::string last_lines(std::size_t count);
  void forget_output();

  // What its greeting says that it serves ("case", "bursts"). Known once next() gave a message.
  bool serves(std::string_view what) const;

  // Stops (resumes) every process of its group; what suspend() returns tells whether all of it stands still.
  Standstill suspend();
  void resume();

  const std::vector<std::string>& command() const { return argv_; }
  pid_t pid() const { return process_->pid(); }  // −1: another host's
  bool is_stopped() const { return process_->is_stopped(); }
  bool can_speak() const { return !process_->is_stopped() && !process_->is_out_of_reach(); }
  void kill();  // its whole process group; no error when it is gone
  // Gives it a moment to exit (it closed its pipe, was killed or was sent `bye`), kills it after that, reaps it.
  Remains bury();

 private:
  void accept_greeting(const std::string& text);

  std::vector<std::string> argv_;
  std::unique_ptr<Hosted> process_;
  FrameReader reader_;
  TailReader errors_;
  bool errors_open_ = true;
  bool greeted_ = false;
  std::vector<std::string> serves_;
};

}  // namespace syslab::runner
