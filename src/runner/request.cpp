#include "runner/request.hpp"

#include <algorithm>
#include <filesystem>

namespace syslab::runner {
namespace {

// This very binary, even if a build has replaced its file meanwhile: then the link names a file that is gone, but can
// still be executed itself.
std::string own_binary() {
  const std::filesystem::path link = "/proc/self/exe";
  std::error_code failed;
  const std::filesystem::path target = std::filesystem::read_symlink(link, failed);
  return failed || !std::filesystem::exists(target) ? link.string() : target.string();
}

}  // namespace

std::vector<std::string> own_worker_command() { return {own_binary(), "worker"}; }

worker::CaseRequest request_for(const plan::PlannedCase& planned, const std::vector<plan::MineSpec>& mine,
                                const RunOptions& options) {
  worker::CaseRequest request;
  request.experiment = planned.experiment->id;
  request.params = planned.params;
  request.implementation = planned.implementation;
  request.device = planned.device;
  request.seed = planned.seed;
  request.case_uid = planned.case_uid;
  request.world_size = planned.world_size;
  request.task = planned.task == plan::Task::law ? "law" : "measure";
  request.law = planned.law;
  if (planned.task == plan::Task::law) request.reproduce = options.reproduce;
  request.protocol = options.protocol;
  request.data = options.data;
  request.law_cases = options.law_cases;
  request.memory_limit_bytes = options.memory_limit_bytes;
  const auto own = std::find_if(mine.begin(), mine.end(),
                                [&](const plan::MineSpec& spec) { return spec.name == planned.implementation; });
  if (own != mine.end()) request.mine = worker::MineRequest{own->name, own->path, own->python_class, own->digest};
  return request;
}

}  // namespace syslab::runner
