#include "runner/request.hpp"

#include <algorithm>
#include <filesystem>

namespace syslab::runner {
namespace {

// This binary itself, even if a build has replaced its file meanwhile: the link then names a deleted file, but can
// still be executed.
std::string own_binary() {
  const std::filesystem::path link = "/proc/self/exe";
  std::error_code failed;
  const std::filesystem::path target = std::filesystem::read_symlink(link, failed);
  return failed || !std::filesystem::exists(target) ? link.string() : target.string();
}

}  // namespace

std::vector<std::string> own_worker_command() { return {own_binary(), "worker"}; }

worker::CaseRequest request_for(const plan::PlannedCase& planned, const std::vector<Submitted>& mine,
                                const MeasureSpec& spec, const std::string& reproduce) {
  worker::CaseRequest request;
  request.experiment = planned.experiment->id;
  request.params = planned.params;
  request.implementation = planned.implementation;
  request.device = planned.device;
  request.seed = planned.seed;
  request.case_uid = planned.case_uid;
  (starts_ranks(planned) ? request.own_ranks : request.world_size) = planned.world_size;
  request.task = planned.task;
  request.law = planned.law;
  if (planned.task == plan::Task::law) request.reproduce = reproduce;
  static_cast<MeasureSpec&>(request) = spec;
  const auto own = std::find_if(mine.begin(), mine.end(),
                                [&](const Submitted& spec) { return spec.name == planned.implementation; });
  if (own != mine.end()) {
    request.mine = *own;
  }
  return request;
}

bool starts_ranks(const plan::PlannedCase& planned) {
  return planned.task != plan::Task::law && planned.experiment->starts_ranks(planned.implementation);
}

bool wants_kernel_code(const plan::PlannedCase& planned) {
  return planned.device == DeviceKind::cuda && planned.task != plan::Task::law &&
         (planned.world_size == 1 || !starts_ranks(planned));
}

}  // namespace syslab::runner
