// One agent as the lab sees it, and the workers that it started.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "agents/orders.hpp"
#include "agents/relay.hpp"
#include "runner/places.hpp"

namespace syslab::agents {

// kAnswer for the other side; less once a signal has come, which is to be answered within a second.
std::chrono::milliseconds patience();

// The line to an agent. Nothing reads it between calls: callers poll.
class Line {
 public:
  // `client`: behind its opening.
  Line(comm::MessageClient client, int rank, Seat seat);

  const Seat& seat() const { return seat_; }
  const std::string& who() const { return who_; }  // "the agent of rank 1 on node7"

  void send(const comm::Packet& packet);
  // Takes what has come, waiting until something does, `wake` is readable or the deadline passes.
  void listen(Deadline deadline, int wake = -1);
  void listen_to_the_end(Deadline deadline);  // until the agent has ended

  const std::string& lost() const { return lost_; }  // why there is no such agent any more; empty: it is there
  void give_up(const std::string& why);

  // What was said of a worker, which is then forgotten.
  std::optional<ExitStatus> take_end(WorkerId worker);
  // Why it could not be started; empty: it has started.
  std::optional<std::string> take_start(WorkerId worker);
  bool is_stopped(WorkerId worker) const { return stopped_.contains(worker); }
  bool is_out_of_reach() const { return !lost_.empty() || Clock::now() - heard_ > kSilence; }

 private:
  comm::MessageClient client_;
  const Seat seat_;
  const std::string who_;
  std::string lost_;
  std::map<WorkerId, ExitStatus> ended_;
  std::map<WorkerId, std::string> started_;  // or why not
  std::set<WorkerId> stopped_;
  Deadline heard_ = Clock::now();
};

class RemoteWorker final : public runner::Hosted {
 public:
  // `connection`: the worker's, behind its opening.
  RemoteWorker(std::shared_ptr<Line> line, WorkerId worker, comm::MessageClient connection);
  ~RemoteWorker() override;

  int to_child() const override { return streams_[0].get(); }
  int from_child() const override { return streams_[1].get(); }
  int error_output() const override { return streams_[2].get(); }
  std::optional<ExitStatus> poll() override;
  void kill_group(int signal) override;
  pid_t pid() const override { return -1; }
  bool is_stopped() override;
  bool is_out_of_reach() override;

 private:
  bool all_has_arrived() const;

  std::shared_ptr<Line> line_;
  WorkerId worker_;
  std::array<FileDescriptor, 3> streams_;    // its standard input, output and error output
  std::unique_ptr<Relay> relay_;             // between these and the worker's
  std::optional<ExitStatus> told_, status_;  // as the agent said; as we say
  Deadline arrive_by_{};                     // once it was told
  std::optional<Deadline> answer_by_;        // once it was killed
};

}  // namespace syslab::agents
