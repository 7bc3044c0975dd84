// A subject and a clock that run on no real time: every call takes what a function says, and everything is written
// down.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "measure/sampler.hpp"

namespace syslab::measure {

class FakeClock final : public Clock {
 public:
  Nanoseconds now() override { return now_; }
  void advance(Nanoseconds by) { now_ += by; }

 private:
  Nanoseconds now_{};
};

struct FakeSubject {
  FakeClock clock;
  std::function<Nanoseconds(int call)> duration;  // of the n-th call
  Nanoseconds refresh_cost{}, verify_cost{};
  int calls = 0;
  std::vector<std::string> events;  // "call 3", "refresh 3", "verify 3": kind and set

  Subject subject(int sets = 1) {
    Subject made;
    made.sets = sets;
    made.call = [this](int set) {
      clock.advance(duration(calls++));
      events.push_back("call " + std::to_string(set));
    };
    made.refresh = [this](int set) {
      clock.advance(refresh_cost);
      events.push_back("refresh " + std::to_string(set));
    };
    made.verify = [this](int set) {
      clock.advance(verify_cost);
      events.push_back("verify " + std::to_string(set));
      return true;
    };
    return made;
  }
};

}  // namespace syslab::measure
