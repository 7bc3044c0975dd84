#include "runner/places.hpp"

#include <utility>

#include "core/process/process_stat.hpp"

namespace syslab::runner {
namespace {

class HostedHere final : public Hosted {
 public:
  explicit HostedHere(Process process) : process_(std::move(process)) {}

  int to_child() const override { return process_.to_child(); }
  int from_child() const override { return process_.from_child(); }
  int error_output() const override { return process_.error_output(); }
  std::optional<ExitStatus> poll() override { return process_.poll(); }
  void kill_group(int signal) override { process_.kill_group(signal); }
  pid_t pid() const override { return process_.pid(); }
  bool is_stopped() override { return syslab::is_stopped(pid()); }

 private:
  Process process_;
};

}  // namespace

std::unique_ptr<Hosted> start_here(const SpawnOptions& options) {
  return std::make_unique<HostedHere>(Process::spawn(options));
}

}  // namespace syslab::runner
