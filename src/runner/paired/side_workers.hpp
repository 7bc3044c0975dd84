// The workers of a comparison's sides between two launches. What is judged is another process in every launch; the
// worker that calls it may go on, with what it keeps of the asker's: a function's reference, whose framework takes a
// second of a processor to import.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "runner/worker_process.hpp"

namespace syslab::runner {

class SideWorkers {
 public:
  struct Kept {
    std::unique_ptr<WorkerProcess> worker;  // stopped; null: there is none
    int cases = 0;                          // that it has had
  };

  Kept take(const std::string& side) {
    const auto found = kept_.find(side);
    return found == kept_.end() ? Kept{} : std::exchange(found->second, {});
  }
  void keep(const std::string& side, Kept kept) { kept_[side] = std::move(kept); }

 private:
  std::map<std::string, Kept> kept_;
};

}  // namespace syslab::runner
