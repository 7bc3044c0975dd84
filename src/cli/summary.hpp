// The end of a run, for people and for machines.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/verbs.hpp"
#include "core/units.hpp"
#include "plan/plan.hpp"
#include "worker/protocol.hpp"

namespace syslab::cli {

// A case that did not end well, and the command to look closer.
struct Concern {
  std::string label, status, detail, command;
  Exit exit = Exit::well;
};

class Summary {
 public:
  // `mine`: as the plan has them, for commands that run one of their cases again.
  explicit Summary(std::string run_uid, std::vector<plan::MineSpec> mine = {})
      : run_uid_(std::move(run_uid)), mine_(std::move(mine)) {}

  // `failed_check`: uid of the check that was falsified, where one was.
  void add(const plan::PlannedCase& planned, worker::Status status, const std::string& detail,
           const std::string& failed_check);
  // Cases of the plan that were not reached.
  void add_missing(std::int64_t count) { missing_ += count; }

  Exit exit() const;
  void print(const Context& context, Nanoseconds took) const;

 private:
  std::string next_command() const;
  std::string command_for(const plan::PlannedCase& planned) const;

  std::string run_uid_;
  std::vector<plan::MineSpec> mine_;
  std::map<worker::Status, std::int64_t> counts_;
  std::vector<Concern> concerns_;
  std::vector<std::string> experiments_;  // measured ones, for the next command
  std::int64_t missing_ = 0, total_ = 0;
  Exit exit_ = Exit::well;
};

}  // namespace syslab::cli
