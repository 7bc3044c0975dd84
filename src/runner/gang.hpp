// The workers of a case that several ranks do together: started together, heard all at once, ended together.
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

#include "runner/intake.hpp"
#include "runner/ranks_verdict.hpp"
#include "runner/rendezvous.hpp"
#include "runner/worker_process.hpp"

namespace syslab::runner {

// How long ranks have to say what they know once another has ended badly; then they are killed.
inline constexpr auto kGrace = std::chrono::seconds(3);

// What goes on while somebody listens to a gang.
struct Hearing {
  Clock::time_point deadline;  // then all are killed
  Watch& watch;
  std::function<void(worker::ProgressRecord)> progress;  // of rank 0, not too often; may be empty
};

class Gang {
 public:
  // A fresh worker a rank, each with its share of the processors' threads (OMP_NUM_THREADS, unless it is set). Each is
  // sent `request` with its rank, its device and the rendezvous: a private folder that is there while the gang is.
  // Where one cannot be started none is left. Nobody is waited for. With places (in the command) each rank has its own,
  // and where these are on several hosts an address in place of the folder.
  Gang(const worker::CaseRequest& request, WorkerProcess::Command command);

  void send(const Json& message);        // to all that are there
  void end_all(const std::string& why);  // kills all that are there; `why` is stored with each

  // Keeps what the ranks say until each has said `wanted`, which `use` gets: true. False: nothing more will come,
  // because all are gone; who has said it and dies while another has not is one that ended badly. An empty `wanted`
  // listens until then. What `use` throws (Error) ends that rank as one that does not speak the protocol. Only what
  // callbacks of `how` throw comes out.
  using Use = std::function<void(int rank, const Json& message)>;
  bool hear(std::string_view wanted, const Use& use, const Hearing& how);

  bool over() const;
  bool ended_well() const;            // over, and each rank ended its case `ok`
  std::vector<pid_t> pids() const;    // of those that are there, on this host
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

    Ending& ending() { return intake.ending; }
  };

  void start(Rank& rank, const worker::CaseRequest& request, const WorkerProcess::Command& command);
  bool listen(Clock::time_point now, std::string_view wanted, const Use& use);
  void take(Rank& rank, const Heard& heard, std::string_view wanted, const Use& use);
  bool take_message(Rank& rank, const std::string& text, std::string_view wanted, const Use& use);
  void ended_badly(Rank& rank);
  void bury(Rank& rank);
  void end_all(const std::function<void(Rank&)>& mark);
  void wait(Clock::time_point now, const Hearing& how);
  void pass_on_progress(Clock::time_point now, const Hearing& how);

  const Rendezvous rendezvous_;  // outlives the ranks
  std::vector<Rank> ranks_;
  Clock::time_point speak_by_ = Clock::time_point::max();  // once one has ended badly
  std::optional<worker::ProgressRecord> progress_;         // of rank 0, not passed on yet
  Clock::time_point next_progress_{};
  int bad_ = 0;
};

}  // namespace syslab::runner
