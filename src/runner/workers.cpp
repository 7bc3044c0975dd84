#include "runner/workers.hpp"

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace syslab::runner {
namespace {

// A worker's environment variables in addition to ours. A law makes thousands of tiny parallel loops and times none of
// them: threads that spin while they wait would take the cores from those that work.
std::map<std::string, std::string> environment_of(const worker::CaseRequest& request, const RunOptions& options) {
  std::map<std::string, std::string> environment = options.environment;
  if (request.task == "law" && std::getenv("OMP_WAIT_POLICY") == nullptr) {
    environment.emplace("OMP_WAIT_POLICY", "passive");
  }
  return environment;
}

// A worker keeps the process of a Python class from case to case: to import a framework for each takes seconds.
bool shares(Isolation isolation, const worker::CaseRequest& request) {
  const bool imports = request.mine && !request.mine->python_class.empty();
  return isolation == Isolation::reuse || (isolation == Isolation::by_device && (request.device == "cuda" || imports));
}

}  // namespace

Lease Workers::take(const worker::CaseRequest& request, bool fresh) {
  const bool shared = shares(options_.isolation, request) && !fresh;
  std::map<std::string, std::string> environment = environment_of(request, options_);
  // A worker that has unread output, or has died since, would spoil the next case.
  if (worker_ && !(shared && shared_ && environment == environment_ && worker_->is_idle())) retire();
  if (!worker_) {
    worker_.emplace(WorkerProcess::Command{options_.worker_command, environment});
    environment_ = std::move(environment);
    shared_ = shared;
    ++spawned_;
    cases_ = 0;
  }
  return {&*worker_, spawned_, cases_++, shared_};
}

void Workers::give_back(bool reusable) {
  if (!reusable || !shared_) worker_.reset();
}

void Workers::retire() {
  if (!worker_) return;
  try {
    worker_->send({{"type", "bye"}});
    worker_->bury();
  } catch (const std::exception&) {  // its destructor ends it as well
  }
  worker_.reset();
}

}  // namespace syslab::runner
