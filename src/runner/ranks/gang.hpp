// The workers of a case with several ranks: started, listened to and ended together.
//
//   Gang gang(request, command);
//   gang.hear({}, {}, {deadline, watch});   // until all are gone
//   Launch launch = judge_ranks(gang.endings(), …);
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/rank_error.hpp"
#include "runner/intake.hpp"
#include "runner/ranks/rendezvous.hpp"
#include "runner/ranks/verdict.hpp"
#include "runner/worker_process.hpp"

namespace syslab::runner {

// How long ranks may still report after another has ended badly; then they are killed. Those that are stopped will
// report nothing, and of those on a host that is not heard it would not arrive: once no others are left, they are
// killed at once.
inline constexpr auto kGrace = std::chrono::seconds(2);

// What goes on while somebody listens to a gang.
struct Hearing {
  Clock::time_point deadline;  // then all are killed
  Watch& watch;
  std::function<void(worker::ProgressRecord)> progress;  // of rank 0, not too often; may be empty
};

class Gang {
 public:
  // Starts a fresh worker per rank, each with its share of the processor's threads (OMP_NUM_THREADS, unless set). Each
  // receives `request` with its rank, its device and the rendezvous: a private folder that exists as long as the gang.
  // If one cannot be started, none is left running. Does not wait. With places (in the command) each rank has its own
  // place, and if these are on several hosts an address instead of the folder. `limit`: how long its ranks wait for
  // each other. One that is stopped (SIGSTOP) for longer ends all, whether the others have found out or have not begun
  // to wait.
  Gang(const worker::CaseRequest& request, WorkerProcess::Command command,
       std::chrono::milliseconds limit = kLimitOfWaits);

  void send(const Json& message);        // to all that are running
  void end_all(const std::string& why);  // kills all that are running; `why` is stored with each

  // Stores the ranks' messages until each has sent `wanted`, which is passed to `use`: then true. False if all ranks
  // are gone; a rank that dies after sending it, while another has not, ended badly. An empty `wanted` listens until
  // all are gone. An Error from `use` ends that rank as a violation of the wire format. Only exceptions of the
  // callbacks in `how` propagate.
  using Use = std::function<void(int rank, const Json& message)>;
  bool hear(std::string_view wanted, const Use& use, const Hearing& how);

  bool over() const;
  bool ended_well() const;            // over, and each rank ended its case `ok`
  std::vector<pid_t> pids() const;    // of those running on this host
  std::vector<RankEnding> endings();  // once it is over

 private:
  struct Rank {
    std::unique_ptr<WorkerProcess> worker;
    Intake intake;
    Clock::time_point exit_by = Clock::time_point::max();  // once it has ended its case
    bool gone = false;                                     // buried, or never there
    bool answered = false;                                 // has said what is wanted
    std::optional<int> bad;
    bool silenced = false;
    std::chrono::nanoseconds stopped_for{};  // as seen from here; 0: it is not stopped
    bool overdue = false;

    Ending& ending() { return intake.ending; }
  };

  void start(Rank& rank, const worker::CaseRequest& request, const WorkerProcess::Command& command);
  bool listen(Clock::time_point now, std::string_view wanted, const Use& use);
  void take(Rank& rank, const Heard& heard, std::string_view wanted, const Use& use);
  bool take_message(Rank& rank, const std::string& text, std::string_view wanted, const Use& use);
  void ended_badly(Rank& rank);
  void bury(Rank& rank);
  void end_all(const std::function<void(Rank&)>& mark);
  bool nobody_left_can_speak() const;
  void look_for_stopped(Clock::time_point now);
  bool one_is_stopped_for_too_long() const;
  void wait(Clock::time_point now, const Hearing& how);
  void pass_on_progress(Clock::time_point now, const Hearing& how);

  const Rendezvous rendezvous_;  // outlives the ranks
  const std::chrono::milliseconds limit_;
  std::vector<Rank> ranks_;
  Clock::time_point speak_by_ = Clock::time_point::max();  // once one has ended badly
  std::optional<worker::ProgressRecord> progress_;         // of rank 0, not passed on yet
  Clock::time_point next_progress_{};
  Clock::time_point looked_ = Clock::now();  // for those that are stopped
  int bad_ = 0;
};

}  // namespace syslab::runner
