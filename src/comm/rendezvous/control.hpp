// The control plane of one rank: a thread and one connection to rank 0, separate from all communication. It tells how
// far this rank is, hears when all must end, and is the watchdog of this rank's operations.
//
//   Control control(*rendezvous, {.limit = 60s, .progress = …, .end = …});
//   control.set_phase("backward", 118);
//   …
//   control.leave();
//
// Limits. An operation that does not end: at `soft` a line on standard error says who is behind; at `limit` all ranks
// end. A rank that is silent for `limit`, or closes its connection without a farewell, also ends all, rank 0 included:
// then each rank finds out by itself. Ending is: `end` is called (it must make every wait of this process return); if
// it has not returned within `budget`, the process ends with the code of a Fault, running nothing of its own any more.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "comm/rendezvous/control_coordinator.hpp"
#include "comm/rendezvous/ending.hpp"
#include "comm/rendezvous/messages.hpp"
#include "comm/rendezvous/rendezvous.hpp"

namespace syslab::comm {

struct ControlOptions {
  std::string name = "control";  // one a rendezvous
  std::chrono::milliseconds limit{60'000};
  std::chrono::milliseconds soft{0};  // 0: half the limit
  std::chrono::milliseconds beat{250};
  std::chrono::milliseconds budget{2'000};
  // Called on the control plane's thread; any may be empty.
  std::function<Progress()> progress;           // its step and phase are set_phase()'s
  std::function<Ending()> failure;              // what failed here that nobody told of yet; no reason: nothing
  std::function<void(const Ending&)> end;       // on a thread of its own
  std::function<std::string()> last_words;      // said when all end: the tail of the flight recorder
  std::function<void(Fault)> exit;              // empty: _exit()
  std::function<void(const std::string&)> say;  // empty: standard error
};

class Control {
 public:
  // Returns when all ranks are connected. The rendezvous is not used after that.
  Control(Rendezvous& rendezvous, ControlOptions options);
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
  ~Control() { leave(); }

  void set_phase(std::string_view phase, std::uint64_t step);
  void fail(std::string_view text) noexcept;  // ends all ranks
  std::optional<Ending> ending() const;

  // Says farewell; nothing is watched from now on. Rank 0, which serves, waits until all have, at most the limit.
  // What fails() until now is told first. Again: nothing.
  void leave() noexcept;

 private:
  void connect(Rendezvous& rendezvous);
  void run();
  void hear(const MessageClient::Message& message);
  void beat(bool now);
  void watch(const Progress& progress, Deadline now);
  void send(std::uint64_t what, const Progress& progress, const Ending& ending = {});
  Progress sample() const;
  void look_for_failure();
  void finish(const Ending& ending);
  void say(const std::string& text) const;
  void wake() noexcept;

  const ControlOptions options_;
  const int rank_, size_;
  std::unique_ptr<ControlCoordinator> coordinator_;
  MessageClient client_;
  FileDescriptor wake_;
  std::filesystem::path socket_file_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string phase_;
  Ending own_failure_;
  std::uint64_t step_ = 0;
  std::optional<Ending> ending_;
  bool leaving_ = false, all_left_ = false, stopping_ = false, ended_here_ = false;

  // The thread's own.
  Deadline next_beat_{}, heard_{}, waiting_since_{};
  Progress watched_;
  bool warned_ = false, asked_to_end_ = false, said_farewell_ = false, alone_ = false;
  std::thread thread_, ending_thread_;
};

}  // namespace syslab::comm
