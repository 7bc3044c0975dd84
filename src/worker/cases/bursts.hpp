// The worker's side of a paired launch (docs/worker-wire.md, "Serving bursts"): a case that is checked and warm
// says `ready`, then is timed in bursts that the host orders one at a time, so that two workers can take turns.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/process/pipe.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::worker {

// Where orders come from and answers go.
class BurstLine {
 public:
  virtual ~BurstLine() = default;
  // Of a case whose request says `starts`: its processes are there. Waits as ordered() does, until it may use them.
  virtual void started() = 0;
  virtual void say(const Ready& ready) = 0;
  virtual void say(const Burst& burst) = 0;
  // Waits for the host without using a processor. False: finish. Throws Error(comm) when the host is gone or says
  // something else.
  virtual bool ordered() = 0;
};

// The line to the host that asked for the case.
class PipeBurstLine final : public BurstLine {
 public:
  // Both are borrowed.
  PipeBurstLine(FrameReader& in, int out) : in_(in), out_(out) {}
  void started() override;
  void say(const Ready& ready) override;
  void say(const Burst& burst) override;
  bool ordered() override;

  bool was_ready() const { return ready_; }  // something was said on it

 private:
  std::string next_word(const char* what);

  FrameReader& in_;
  int out_;
  bool ready_ = false;
};

// Says ready and takes a burst for each order until the host says finish. `take` times one burst and returns the
// seconds per call; when it returns, nothing of it may go on. Returns what it took, in order of time.
std::vector<double> serve_bursts(BurstLine& line, const Ready& ready, const std::function<double()>& take);

}  // namespace syslab::worker
