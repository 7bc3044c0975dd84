// The interface of a running case: its request, its random inputs, and where it sends its records.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/call_channel.hpp"
#include "core/error.hpp"
#include "core/random.hpp"
#include "measure/device.hpp"
#include "measure/resolution.hpp"
#include "stats/timing_warning.hpp"
#include "worker/judged/call.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::worker {

class BurstLine;      // worker/cases/bursts.hpp
class ForeignWorker;  // worker/judged/foreign.hpp

class CaseContext {
 public:
  using Emit = std::function<void(const Record&)>;
  // `bursts` is where the host orders bursts, for task `paired`; it must outlive the context.
  CaseContext(CaseRequest request, Emit emit, BurstLine* bursts = nullptr);

  const CaseRequest& request() const { return request_; }
  const Params& params() const { return request_.params; }
  int rank() const { return request_.rank; }
  int world_size() const { return request_.world_size; }
  bool is_law() const { return request_.task == Task::law; }
  bool is_paired() const { return request_.task == Task::paired; }
  bool is_code() const { return request_.task == Task::code; }
  // Whether its body knows task `code`; others would be measured as a whole.
  bool tells_code() const { return tells_code_; }
  void can_tell_code() { tells_code_ = true; }
  BurstLine& bursts();  // of task `paired`

  RandomStream stream(std::string_view name) const;  // keyed by the case's seed and this name
  // For what somebody else's implementation must not know before it is asked: other numbers in each attempt, since it
  // may know the run's seed, or find it by trying all that people type. Of our own, stream().
  RandomStream unforeseen(std::string_view name) const;
  void emit(const Record& record) { emit_(record); }

  // Shorthands.
  void metric(std::string name, std::string unit, double value);
  void missing_metric(std::string name, std::string unit, std::string why);
  void progress(double fraction, std::string text);

  // The process that serves request().mine where it runs apart, started at first use. It is kept for the next
  // case of the same file, device and limit in this process, since starting it and importing a framework takes
  // seconds. A case of another implementation in this process ends it first, since it may hold GPU memory.
  std::shared_ptr<CallChannel> channel();
  // Starts it and does not wait until it is there, as channel() does: others start meanwhile.
  void start_channel() { opened(false, false); }
  // Of that process, from its next call on (worker/judged/foreign.hpp); false if there is none, or it cannot be had.
  bool serve_cold(bool wanted) const;
  bool serve_graphs(bool wanted) const;
  bool serve_kernels(bool wanted) const;
  const KernelsOfCall& kernels() const;  // of its calls since serve_kernels(true), which was had
  // What first calls of its laws have taken so far, in all of its cases (worker/judged/first_calls.hpp).
  Nanoseconds first_calls() const;
  // Of its last call: what is known of the GPU meanwhile (worker/judged/foreign.hpp).
  measure::Window last_window() const;
  // The same for a class that several ranks use: the process starts them by itself (src/python/syslab_ranks.py).
  std::shared_ptr<CallChannel> rank_channel() { return opened(true); }
  // Ranks of the lab's own, in a process that is started now and ends with what is returned: what a class is timed
  // beside, and what says how it should have ended. Behind the same walls, so that times may be compared.
  std::shared_ptr<CallChannel> lab_ranks() const;
  // Of a function (Submitted::is_function): the process that makes its arguments and knows its results, turned to the
  // case of that name. It is of whoever asks, so it is kept whatever is judged; nothing of what is judged reaches it.
  std::shared_ptr<ForeignWorker> reference(const std::string& case_name) const;
  // How often that process changes that case's arguments for a bound that has been enough so far; as long as it lives.
  int& probes(const std::string& case_name) const;
  // Whether that process, once it has ended, is started again at the next call: of a law on the CPU.
  bool revives() const;
  pid_t channel_pid() const;  // of that process as it is now; 0 where there is none
  // Of a case with --mine: the walls around that process, and whose clock timed its calls; and what warns of its times.
  Json channel_facts() const;
  // The case says itself behind which walls what it judges is, since it calls none of these processes.
  void tells_walls() { tells_walls_ = true; }
  // Of that process's calls in this case: what handing one over takes (measure/resolution.hpp).
  measure::Handover handover() const;
  // What the verdict on this case's times is to be told with.
  void warn(const std::vector<stats::TimingWarning>& warnings) { stats::add_warnings(warnings_, warnings); }

 private:
  std::shared_ptr<CallChannel> opened(bool with_ranks, bool waits = true);

  CaseRequest request_;
  std::uint64_t unforeseen_seed_;
  Emit emit_;
  BurstLine* bursts_;
  bool tells_code_ = false, tells_walls_ = false;
  std::shared_ptr<CallChannel> channel_;
  std::vector<stats::TimingWarning> warnings_;
};

// Of a case that has just ended: the process that the next would have found (CaseContext::channel).
void end_what_is_judged();

// Whether its implementation is called in a process of its own: whatever --mine names, wherever it computes.
bool runs_apart(const CaseRequest& request);

// Thrown by a case that cannot be done here; the attempt ends as `unsupported` with this reason.
using syslab::Unsupported;

// Thrown after a CheckRecord with outcome falsified or error was emitted; the attempt ends as `check_failed`.
class CheckFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace syslab::worker
