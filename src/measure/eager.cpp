#include "measure/eager.hpp"

namespace syslab::measure {

Samples take_eager_samples(Protocol protocol, const Subject& subject, const Instruments& instruments,
                           std::uint64_t random) {
  using std::chrono::milliseconds;
  protocol.launch = Launch::direct;
  protocol.warmup_time = protocol.warmup_limit = milliseconds(5);
  protocol.warmup_until_steady = false;
  protocol.min_samples = 8;
  protocol.max_samples = 100;
  protocol.precision = 0.01;
  protocol.device_budget = protocol.wall_budget = milliseconds(100);
  protocol.cool_down = {};
  return take_samples(protocol, subject, instruments, random, {});
}

}  // namespace syslab::measure
