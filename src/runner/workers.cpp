#include "runner/workers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace syslab::runner {
namespace {

// A worker's environment variables in addition to ours. A law makes thousands of tiny parallel loops and times none of
// them: threads that spin while they wait would take the cores from those that work.
std::map<std::string, std::string> environment_of(const worker::CaseRequest& request, const RunOptions& options) {
  std::map<std::string, std::string> environment = options.environment;
  if (request.task == Task::law && std::getenv("OMP_WAIT_POLICY") == nullptr) {
    environment.emplace("OMP_WAIT_POLICY", "passive");
  }
  return environment;
}

// A worker keeps the process of a Python class from case to case: to import a framework for each takes seconds.
bool shares(Isolation isolation, const worker::CaseRequest& request) {
  const bool imports = request.mine && request.mine->runs_in_python();
  return isolation == Isolation::reuse ||
         (isolation == Isolation::by_device && (request.device == DeviceKind::cuda || imports));
}

// Of which implementation a shared worker keeps the imports; empty: it takes whatever comes. On a GPU all share one,
// whose judged process ends with the next implementation, since it holds memory of the device.
std::string owner_of(Isolation isolation, const worker::CaseRequest& request) {
  return isolation == Isolation::by_device && request.device != DeviceKind::cuda ? request.implementation : "";
}

// Each holds a few hundred megabytes of a framework; of more implementations than these the others import anew.
constexpr std::size_t kMostAside = 3;

}  // namespace

bool has_plenty_of_memory() {
  std::ifstream file("/proc/meminfo");
  std::uint64_t total = 0, available = 0, value = 0;
  for (std::string name, unit; file >> name >> value && std::getline(file, unit);) {
    if (name == "MemTotal:") total = value;
    if (name == "MemAvailable:") available = value;
  }
  return available > total / 4;
}

Workers::~Workers() {
  if (current_) retire(std::move(current_));
  for (std::unique_ptr<Member>& member : aside_) {
    member->process.resume();
    retire(std::move(member));
  }
}

Lease Workers::take(const worker::CaseRequest& request, bool fresh) {
  const bool shared = shares(options_.isolation, request) && !fresh;
  const std::string owner = shared ? owner_of(options_.isolation, request) : "";
  std::map<std::string, std::string> environment = environment_of(request, options_);
  const auto waiting = std::ranges::find_if(
      aside_, [&](const auto& it) { return it->owner == owner && it->environment == environment; });
  const bool is_aside = !owner.empty() && waiting != aside_.end();
  const auto fits = [&](Member& it) {
    return shared && it.shared && it.environment == environment && it.keeps_imports == !owner.empty() &&
           (it.owner == owner || (it.owner.empty() && !is_aside));
  };
  std::unique_ptr<Member> woken;
  if (is_aside) {
    woken = std::move(*waiting);
    aside_.erase(waiting);
  }
  // A worker that has unread output, or has died since, would spoil the next case.
  if (current_ && !(fits(*current_) && current_->process.is_idle())) set_aside();
  if (woken) {
    woken->process.resume();
    if (woken->process.is_idle()) current_ = std::move(woken);
  }
  if (!current_) {
    current_.reset(new Member{.process = WorkerProcess({options_.worker_command, environment}),
                              .environment = environment,
                              .shared = shared,
                              .keeps_imports = !owner.empty(),
                              .ordinal = spawned_ + 1});
    ++spawned_;
  }
  current_->owner = owner;
  return {&current_->process, current_->ordinal, current_->cases++, shared};
}

void Workers::give_back(bool reusable) {
  if (!reusable || (current_ && !current_->shared)) current_.reset();
}

void Workers::set_aside() {
  if (!current_) return;
  if (current_->owner.empty() || aside_.size() == kMostAside || !has_plenty_of_memory() ||
      !current_->process.is_idle()) {
    retire(std::move(current_));
    return;
  }
  // What cannot be stopped would work while the next case is measured.
  if (!current_->process.suspend().reached()) return current_.reset();
  aside_.push_back(std::move(current_));
}

void Workers::give_up(const std::string& implementation) {
  if (current_ && current_->owner == implementation) current_->owner.clear();
}

// Says `bye` and waits for its exit.
void Workers::retire(std::unique_ptr<Member> member) {
  try {
    member->process.send({{"type", "bye"}});
    member->process.bury();
  } catch (const std::exception&) {  // its destructor ends it as well
  }
}

}  // namespace syslab::runner
