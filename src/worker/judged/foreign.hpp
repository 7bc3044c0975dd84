// An implementation in another process, of any language, as a CallChannel: spawned behind walls, greeted, called
// through shared memory, watched and timed. It inherits its pipes and that memory and nothing else.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/call_channel.hpp"
#include "core/declares_domain.hpp"
#include "core/device_kind.hpp"
#include "core/nvml.hpp"
#include "core/process/pipe.hpp"
#include "core/process/process.hpp"
#include "judge/private_folder.hpp"
#include "judge/walls.hpp"
#include "measure/device.hpp"
#include "worker/judged/call_clock.hpp"
#include "worker/judged/gpu_handover.hpp"
#include "worker/judged/shared_segment.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::worker {

inline int processors() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

// The call of ranks that is timed (src/python/syslab_ranks.py).
inline constexpr const char* kStepOfRanks = "step";

struct ForeignOptions {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;  // added to ours
  std::uint64_t memory_limit_bytes = 0;            // told to the worker, which limits itself; 0: none
  std::uint64_t shared_memory_bytes = 0;           // what a /dev/shm of its own may hold; 0: as the system has it
  DeviceKind device = DeviceKind::cpu;             // where the implementation is to compute
  int rank = 0, world_size = 1;                    // of the case that it is called by
  std::string implementation;                      // "file.py:Class", or empty: its command says what it serves
  std::string about;                               // which of its things is called, where it has several
  bool starts_ranks = false;                       // it makes processes that talk to each other
  bool judged = false;                             // its start loads what is judged: a crash there is that one's
  bool own_group = true;                           // core/process/process.hpp
  bool waited_for = true;                          // else it starts while others do; await_greeting() is to follow
  std::optional<judge::Profile> walls;             // nothing: none
  bool constant_inputs = false;                    // a call that changed any has failed, and not only q, k and v
  // Whose memory may be shared with it, where that is asked for (worker/judged/gpu_handover.hpp); nothing: tensors are
  // copied.
  std::optional<device::Place> shares{device::Place{device::Kind::cuda, 0}};
  std::chrono::milliseconds behind_the_last_word = kBehindTheLastWord;
  std::chrono::milliseconds start_timeout{180'000};  // until its hello: importing a framework from a cold disk is slow
  std::chrono::milliseconds call_timeout{10 * 60'000};  // of one call
};

// The command that serves a Python class: the interpreter (SYSLAB_PYTHON, else python3) and syslab_worker.py (from
// SYSLAB_PYTHON_DIR, else the copies inside this binary). It is the same for every class and for every function, so
// that a file cannot tell by it which side of a comparison it is: ForeignOptions::implementation says what to load.
std::vector<std::string> python_worker_command(const Submitted& mine);
std::string implementation_of(const Submitted& mine);

// The same for a class that several ranks use: syslab_ranks.py.
std::vector<std::string> python_ranks_command(const Submitted& mine);

// Of no class: what one is timed beside, and the training by one process (src/python/syslab_ranks.py, --lab).
std::vector<std::string> python_lab_ranks_command();

// The command, without its task, of what makes a function's arguments and knows its results: syslab_reference.py.
// Both are "file.py:name".
std::vector<std::string> python_reference_command(const std::string& reference, const std::string& inputs,
                                                  DeviceKind device);

// The command that serves a library: this very binary, which opens it (docs/worker-wire.md).
std::vector<std::string> library_worker_command(const Submitted& mine, DeviceKind device);

// Error(comm) unless a call may have these inputs before its clock starts.
void refuse_early(const CallRequest& request, const std::vector<std::string>& early);

// Outputs begin as the caller's buffers are, so an element that the worker forgot still holds the caller's poison. An
// output without memory (null data) is room for the call to work in: nothing is copied.
// The time of a call is ours (worker/judged/call_clock.hpp), from the release of its inputs until its outputs are
// complete; on a GPU by our own stream (worker/judged/gpu_handover.hpp), or around the worker's copies, or the
// worker's: as worker/judged/gpu_memory.hpp says. Beyond the contract of CallChannel: throws Unsupported when the
// implementation says so, Error(check) when it wrote outside its outputs or reports more time than the whole call took.
// Calls must come from the thread that constructed it.
class ForeignWorker : public CallChannel, public DeclaresDomain {
 public:
  explicit ForeignWorker(ForeignOptions options);

  Nanoseconds call(std::string_view function, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs,
                   const Params& options) override;

  // From now on its calls are about another of its things. Its greeting is said anew, and throws what the first may.
  void turn_to(std::string about);
  // Of one that was not waited for (ForeignOptions::waited_for): until it has greeted. Throws what the constructor may.
  void await_greeting();
  const Json& declared_domain() const override { return *declared_; }
  const std::string& name() const { return name_; }  // as its hello gives it
  const std::string& language() const { return language_; }
  bool usable() const { return broken_.empty(); }
  pid_t pid() const { return process_.pid(); }
  CallClock& clock() { return clock_; }
  // From the next call on, behind each tensor lies a page that the worker may not touch, if it knows how to.
  void guard_pages(bool wanted) { guarded_ = wanted; }
  void call_timeout(std::chrono::milliseconds most) { options_.call_timeout = most; }  // from the next call on
  // From the next call on, no cache holds anything of a call's tensors when its inputs are released. False where that
  // cannot be had: on a processor that does not let a program do it, and on a GPU whose memory is not shared.
  bool serve_cold(bool wanted);
  // From the next call on, each is captured as a graph, whose replay is timed. False where the worker cannot do that.
  bool serve_graphs(bool wanted) {
    graphs_ = wanted && captures_;
    return graphs_;
  }
  // From the next call on each is told of, and none is timed. False where the worker cannot do that.
  bool serve_kernels(bool wanted) {
    kernels_wanted_ = wanted && tells_kernels_;
    kernels_ = {};
    return kernels_wanted_;
  }
  const KernelsOfCall& kernels() const { return kernels_; }  // of all calls since
  // Of the last call on a GPU, besides its time: what holds its clocks down, as NVML tells us right behind it; the
  // clock rate, as the worker tells.
  const measure::Window& last_window() const { return last_window_; }
  // Which walls stand around it, and which are missing; and how tensors travel to a GPU.
  Json walls_facts() const;

 private:
  using Clock = std::chrono::steady_clock;

  // What it was asked last, for messages.
  struct Doing {
    std::string words;
    bool in_function = false;  // whatever ends the process then is the user's function
  };
  static Doing starting();
  static Doing running(const CallRequest& request);

  Nanoseconds called(std::string_view function, std::span<const NamedInput> inputs,
                     std::span<const NamedOutput> outputs, const Params& options);
  void say_hello();
  void send(const Json& message, const Doing& doing);
  Json receive(Clock::time_point deadline, std::chrono::milliseconds timeout, const Doing& doing);
  bool answers_within(std::chrono::milliseconds limit);
  Json run(CallRequest& request, std::span<const NamedInput> inputs, CallClock::Readings& spent,
           const std::function<void()>& take_outputs);
  void share_gpu();
  std::int64_t flags_of_gpu();
  static bool is_question(const CallRequest& request);
  bool is_timed(const CallRequest& request) const;
  bool is_no_step(const CallRequest& request) const;
  bool talks() const;
  Nanoseconds call_on_gpu(CallRequest& request, std::span<const NamedInput> inputs,
                          std::span<const NamedOutput> outputs);
  Json run_on_gpu(const CallRequest& request, CallClock::Readings& spent);
  void free_stream();
  void stop(std::string why);
  bool wants_empty_call(const CallRequest& request) const;
  void call_empty(const CallRequest& like, std::span<const NamedInput> inputs);
  Nanoseconds timed(const CallRequest& request, const Json& reply, CallClock::Readings spent);
  void demand_finished();
  bool must_stay(std::string_view function, std::string_view input) const;
  void copy_in(const CallRequest& request, std::span<const NamedInput> inputs, const std::vector<std::string>& early,
               bool wanted);
  [[noreturn]] void fail_dead(const Doing& doing);
  std::string loaded() const;
  FindingKind kind_of_end(const std::optional<ExitStatus>& status) const;

  ForeignOptions options_;
  std::optional<judge::PrivateFolder> folder_;
  std::optional<judge::Walls> walls_;
  SharedSegment segment_;
  Process process_;
  FrameReader reader_;
  TailReader errors_;
  bool greets_ = false;   // it was told hello, then, and its answer was not read
  bool loading_ = false;  // its last message was "loading": what is judged runs before the greeting
  Clock::time_point said_hello_;
  std::string name_, language_;
  std::shared_ptr<const Json> declared_;
  std::unique_ptr<FirstPage> words_;        // by which both streams wait
  std::unique_ptr<GpuHandover> gpu_;        // of what computes on a GPU; null: tensors travel through host memory
  std::unique_ptr<SharedSegment> staging_;  // then: where they lie here
  int gates_missed_ = 0;                    // calls in a row that were released before they had queued all
  bool waits_for_release_ = false, guarded_ = false, cold_ = false, captures_ = false, graphs_ = false;
  bool serves_empty_ = false;   // calls that compute nothing (EmptyCall)
  bool trusted_ = false;        // what its own clock says is the time of a call
  std::unique_ptr<Nvml> nvml_;  // of what computes on a GPU
  NvmlDevice nvml_device_ = nullptr;
  measure::Window last_window_;
  bool tells_kernels_ = false, kernels_wanted_ = false;
  KernelsOfCall kernels_;
  std::string last_function_;               // of the last guarded call that returned
  std::vector<SharedTensor> last_outputs_;  // whose memory nobody has any business with until the next
  CallClock clock_{processors()};
  std::string broken_;  // why no further call is possible
};

}  // namespace syslab::worker
