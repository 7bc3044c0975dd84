#include "worker/cases/case_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <utility>

#include "core/declares_domain.hpp"
#include "core/error.hpp"
#include "core/first_of_a_process.hpp"
#include "core/process/environment_variable.hpp"
#include "stats/summary.hpp"
#include "worker/judged/first_calls.hpp"
#include "worker/judged/foreign.hpp"
#include "worker/wire/metric_range.hpp"

namespace syslab::worker {
namespace {

struct Kept {
  std::string what;
  std::shared_ptr<ForeignWorker> worker;
  std::chrono::steady_clock::duration slowest{};  // of its calls in laws that came back
  bool hung = false;                              // one did not
  bool first_call = false;                        // the next call is of a new kind, and may compile
  FirstCallsSoFar first_calls;                    // of laws
};

Kept& kept() {
  static Kept one;
  return one;
}

struct KeptReference {
  std::string what;
  std::shared_ptr<ForeignWorker> worker;
  std::map<std::string, int> probes;  // that a case has been found to need
};

KeptReference& kept_reference() {
  static KeptReference one;
  return one;
}

// Which process of the asker's a case needs; empty: none.
std::string reference_for(const CaseRequest& request) {
  if (!request.mine || !request.mine->is_function()) return {};
  return fmt::format("{}\n{}\n{}", request.mine->comparison()->reference, request.mine->comparison()->inputs,
                     to_string(request.device));
}

// Of a process that works on large arrays again and again and times nothing: what it frees it keeps, since half of its
// time would go into clearing the pages of new ones, and its threads sleep while they wait.
std::map<std::string, std::string> of_a_reference() {
  std::map<std::string, std::string> environment;
  for (const auto& [name, value] : {std::pair{"MALLOC_MMAP_MAX_", "0"},
                                    {"MALLOC_TRIM_THRESHOLD_", "1000000000000"},
                                    {"OMP_WAIT_POLICY", "passive"},
                                    {"KMP_BLOCKTIME", "0"}}) {
    if (std::getenv(name) == nullptr) environment.emplace(name, value);
  }
  return environment;
}

// Of a Python class on the CPU under a law, of which nothing is timed: OpenBLAS takes one thread, and threads of OpenMP
// sleep while they wait. Of a law's small products others had little but waiting, in a loop of system calls that took a
// third of a search's processor time. Races of the class's own threads stay what they are. What the user has set
// stands.
std::map<std::string, std::string> quiet_threads() {
  std::map<std::string, std::string> environment;
  for (const auto& [name, value] :
       {std::pair{"OPENBLAS_NUM_THREADS", "1"}, {"OMP_WAIT_POLICY", "passive"}, {"KMP_BLOCKTIME", "0"}}) {
    if (std::getenv(name) == nullptr) environment.emplace(name, value);
  }
  return environment;
}

bool is_quiet(const CaseRequest& request) {
  return !request.law.empty() && request.device == DeviceKind::cpu && request.mine->runs_in_python();
}

// Which judged process a case needs; empty: none.
std::string process_for(const CaseRequest& request) {
  if (!runs_apart(request)) return {};
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n", request.mine->path(), request.mine->inside(),
                     to_string(request.device), request.memory_limit_bytes, request.world_size,
                     request.mine->is_function(), is_quiet(request));
}

// libsyslab of this very build or installation; else its name, for the system to find.
std::string library_beside() {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path here = fs::read_symlink("/proc/self/exe", failed).parent_path();
  for (const char* place :
       {"src/capi/libsyslab.so", "lib/libsyslab.so.0", "../lib/libsyslab.so.0", "../lib64/libsyslab.so.0"}) {
    if (fs::exists(here / place, failed)) return (here / place).lexically_normal().string();
  }
  return "libsyslab.so.0";
}

bool guards_wanted_on_a_gpu() { return environment_variable("SYSLAB_GPU_GUARDS") != "off"; }

// A process that is started again once it has ended, lost its GPU, or hangs: laws then find a smaller input that does
// it. `longest_first`: what a first call of its kind may take. `guarded`: its calls have a guard page behind each
// tensor.
class Revived : public CallChannel, public DeclaresDomain {
 public:
  Revived(ForeignOptions options, std::chrono::milliseconds longest_first, bool guarded)
      : options_(std::move(options)), longest_first_(longest_first), guarded_(guarded) {}

  Nanoseconds call(std::string_view function, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs,
                   const Params& all_options) override {
    Params options;
    for (const auto& [name, value] : all_options) {
      if (name != kFirstOfAProcess) options.set(name, value);
    }
    const bool anew = all_options.has(kFirstOfAProcess);
    if (anew || !kept().worker->usable()) kept().worker = std::make_shared<ForeignWorker>(options_);
    Kept& one = kept();
    one.worker->guard_pages(guarded_);
    const std::chrono::milliseconds most = std::exchange(one.first_call, false) ? longest_first_ : longest(one);
    one.worker->call_timeout(most);
    const auto begin = std::chrono::steady_clock::now();
    const auto took = [&] { return std::chrono::steady_clock::now() - begin; };
    try {
      const Nanoseconds measured = one.worker->call(function, inputs, outputs, options);
      one.slowest = std::max(one.slowest, took());
      return measured;
    } catch (const Error&) {
      one.hung = one.hung || (!one.worker->usable() && took() >= most);
      throw;
    }
  }
  const Json& declared_domain() const override { return kept().worker->declared_domain(); }

 private:
  // A law's call takes milliseconds. Of what has hung once, thirty times the slowest that came back, so that there
  // is time to make its input smaller.
  std::chrono::milliseconds longest(const Kept& one) const {
    constexpr std::chrono::milliseconds kLeast{300};
    if (!one.hung || options_.call_timeout <= kLeast) return options_.call_timeout;
    return std::clamp(std::chrono::duration_cast<std::chrono::milliseconds>(30 * one.slowest), kLeast,
                      options_.call_timeout);
  }

  ForeignOptions options_;
  std::chrono::milliseconds longest_first_;
  bool guarded_;
};

bool is_in_python(const CaseRequest& request) { return request.mine->runs_in_python(); }

ForeignOptions judged_process(const CaseRequest& request, bool with_ranks) {
  const bool python = is_in_python(request);
  ForeignOptions options;
  options.command = with_ranks ? python_ranks_command(*request.mine)
                    : python   ? python_worker_command(*request.mine)
                               : library_worker_command(*request.mine, request.device);
  if (python && !with_ranks) options.implementation = implementation_of(*request.mine);
  if (is_quiet(request)) options.environment = quiet_threads();
  options.constant_inputs = !python || request.mine->is_function();
  if (judge::walls_wanted()) options.walls = python ? judge::Profile::python : judge::Profile::native;
  options.device = request.device;
  options.rank = request.rank;
  options.world_size = request.world_size;
  options.starts_ranks = with_ranks;
  options.judged = true;
  // On a GPU the limit is for another memory, and CUDA reserves more addresses than any limit of ours would allow.
  options.memory_limit_bytes = request.device == DeviceKind::cpu ? request.memory_limit_bytes : 0;
  options.shared_memory_bytes = request.memory_limit_bytes;
  options.own_group = false;  // the runner ends our group, and with it whatever the user's class has started
  return options;
}

struct CallLimits {
  std::chrono::milliseconds each{}, first{};  // first: of its kind
};

// What hangs is to be told with its input, before the host ends the case. torch.compile takes a minute where other
// processes keep the processors busy, and is no hang.
CallLimits limits_under_a_law(const CaseRequest& request) {
  constexpr std::chrono::milliseconds kLongest{60'000}, kLongestThatCompiles{150'000};
  const auto part = [&](int quarters) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(quarters * request.timeout / 4);
  };
  const std::chrono::milliseconds each =
      std::min(request.device == DeviceKind::cpu ? kLongest : kLongestThatCompiles, part(1));
  return {each, is_in_python(request) ? std::min(kLongestThatCompiles, part(3)) : each};
}

// The process that was kept, if it is the one that is needed; else a new one in its place.
void keep_process(const std::string& what, const ForeignOptions& options) {
  if (kept().worker && kept().what == what) {
    kept().worker->clock().begin_case();
  } else {
    kept() = {};  // before another is started
    kept() = {what, std::make_shared<ForeignWorker>(options)};
  }
  kept().worker->serve_cold(false);
  kept().worker->serve_graphs(false);
  kept().worker->call_timeout(options.call_timeout);
}

std::uint64_t fresh_seed() {
  std::random_device entropy;
  return (static_cast<std::uint64_t>(entropy()) << 32) | entropy();
}

// Never sends a number that the host would refuse; the note of its metric says what was found.
CaseContext::Emit checked(CaseContext::Emit emit) {
  return [emit = std::move(emit)](const Record& record) {
    const auto* metric = std::get_if<MetricRecord>(&record);
    emit(metric == nullptr ? record : Record(sendable(*metric)));
  };
}

}  // namespace

void end_what_is_judged() { kept() = {}; }

bool runs_apart(const CaseRequest& request) { return request.mine.has_value(); }

CaseContext::CaseContext(CaseRequest request, Emit emit, BurstLine* bursts)
    : request_(std::move(request)), unforeseen_seed_(fresh_seed()), emit_(checked(std::move(emit))), bursts_(bursts) {
  Kept& one = kept();
  const std::string needed = process_for(request_);
  if (one.worker && (needed.empty() || !one.what.starts_with(needed) || !one.worker->usable())) one = {};
  if (kept_reference().what != reference_for(request_)) kept_reference() = {};
}

BurstLine& CaseContext::bursts() {
  if (bursts_ == nullptr) throw Error(ErrorKind::internal, "nobody orders bursts of this case");
  return *bursts_;
}

// By experiment and case as well as by seed: two experiments of one run draw unrelated numbers under the same name.
RandomStream CaseContext::stream(std::string_view name) const {
  return RandomStream::derive(request_.seed, request_.experiment, request_.case_uid, name);
}

RandomStream CaseContext::unforeseen(std::string_view name) const {
  if (!request_.mine) return stream(name);
  return RandomStream::derive(unforeseen_seed_, request_.experiment, request_.case_uid, name);
}

void CaseContext::metric(std::string name, std::string unit, double value) {
  MetricRecord record;
  record.name = std::move(name);
  record.unit = std::move(unit);
  record.value = value;
  record.rank = request_.rank;
  emit_(record);
}

void CaseContext::missing_metric(std::string name, std::string unit, std::string why) {
  MetricRecord record;
  record.name = std::move(name);
  record.unit = std::move(unit);
  record.note = std::move(why);
  record.rank = request_.rank;
  emit_(record);
}

void CaseContext::progress(double fraction, std::string text) { emit_(ProgressRecord{std::move(text), fraction}); }

std::shared_ptr<CallChannel> CaseContext::channel() {
  std::shared_ptr<CallChannel> made = opened(false);
  try {
    if (kept().worker) kept().worker->await_greeting();
  } catch (...) {  // as one that could not be made
    channel_ = nullptr;
    kept() = {};
    throw;
  }
  return made;
}

std::shared_ptr<CallChannel> CaseContext::opened(bool with_ranks, bool waits) {
  if (channel_) return channel_;
  if (!runs_apart(request_)) {
    throw Error(ErrorKind::internal, fmt::format("implementation '{}' of this case does not live in another process",
                                                 request_.implementation));
  }
  ForeignOptions options = judged_process(request_, with_ranks);
  options.waited_for = waits || revives();
  if (is_code()) options.shares.reset();  // it tells of its kernels, and is not timed
  CallLimits limits;
  if (revives()) {
    limits = limits_under_a_law(request_);
    options.call_timeout = limits.each;
  }
  keep_process(process_for(request_) + (with_ranks ? "ranks" : ""), options);
  if (!revives()) {
    kept().worker->guard_pages(false);
    return channel_ = kept().worker;
  }
  const bool on_gpu = request_.device != DeviceKind::cpu;
  const auto revived = std::make_shared<Revived>(std::move(options), limits.first, !on_gpu || guards_wanted_on_a_gpu());
  const CallKinds kinds = on_gpu ? CallKinds::by_shape : CallKinds::by_function;
  const auto told = [this] {
    kept().first_call = true;
    progress(0, fmt::format("{}: a first call, which may compile", request_.law));
  };
  return channel_ = std::make_shared<FirstCalls>(revived, kinds, kept().first_calls, told);
}

std::shared_ptr<ForeignWorker> CaseContext::reference(const std::string& case_name) const {
  KeptReference taken = std::exchange(kept_reference(), {});  // put back once it has done what it was asked
  if (taken.worker && taken.worker->usable()) {
    taken.worker->turn_to(case_name);
  } else {
    ForeignOptions options;
    options.command = python_reference_command(request_.mine->comparison()->reference,
                                               request_.mine->comparison()->inputs, request_.device);
    options.environment = of_a_reference();
    options.about = case_name;
    if (judge::walls_wanted()) options.walls = judge::Profile::python;
    options.own_group = false;
    taken = {reference_for(request_), std::make_shared<ForeignWorker>(std::move(options)), {}};
  }
  kept_reference() = taken;
  return taken.worker;
}

int& CaseContext::probes(const std::string& case_name) const { return kept_reference().probes[case_name]; }

std::shared_ptr<CallChannel> CaseContext::lab_ranks() const {
  ForeignOptions options;
  options.command = python_lab_ranks_command();
  if (judge::walls_wanted()) options.walls = judge::Profile::python;
  options.device = request_.device;
  options.starts_ranks = true;
  options.own_group = false;
  if (environment_variable("SYSLAB_LIBRARY").empty()) options.environment.emplace("SYSLAB_LIBRARY", library_beside());
  return std::make_shared<ForeignWorker>(std::move(options));
}

bool CaseContext::serve_cold(bool wanted) const {
  return channel_ && kept().worker && kept().worker->serve_cold(wanted);
}

bool CaseContext::serve_graphs(bool wanted) const {
  return channel_ && kept().worker && kept().worker->serve_graphs(wanted);
}

bool CaseContext::serve_kernels(bool wanted) const {
  return channel_ && kept().worker && kept().worker->serve_kernels(wanted);
}

const KernelsOfCall& CaseContext::kernels() const { return kept().worker->kernels(); }

Nanoseconds CaseContext::first_calls() const { return kept().first_calls.spent; }

measure::Window CaseContext::last_window() const {
  return channel_ && kept().worker ? kept().worker->last_window() : measure::Window{};
}

bool CaseContext::revives() const { return is_law() && runs_apart(request_); }

pid_t CaseContext::channel_pid() const { return channel_ && kept().worker ? kept().worker->pid() : 0; }

Json CaseContext::channel_facts() const {
  if (!request_.mine) return Json::object();
  Json facts = Json::object();
  if (!tells_walls_) facts["walls"] = "none";
  if (!warnings_.empty()) facts["warnings"] = stats::to_json(warnings_);
  if (!channel_ || !kept().worker) return facts;
  const CallClock& clock = kept().worker->clock();
  facts.update(kept().worker->walls_facts());
  facts.update(clock.facts());
  if (!clock.forwards().empty()) facts["untimed_forward_seconds"] = stats::summarize(clock.forwards()).median;
  return facts;
}

measure::Handover CaseContext::handover() const {
  return channel_ && kept().worker ? kept().worker->clock().handover() : measure::Handover{};
}

}  // namespace syslab::worker
