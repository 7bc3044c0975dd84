// A wait that ends: for what another process can hold up.
#pragma once

#include <chrono>
#include <functional>

namespace syslab::worker {

// Whether has_come() says so within `limit`. It is asked at once, then often, then a thousand times a second, and a
// last time at the end, so that a host that gets no turn for longer than the limit accuses nobody.
bool comes_within(std::chrono::milliseconds limit, const std::function<bool()>& has_come);

}  // namespace syslab::worker
