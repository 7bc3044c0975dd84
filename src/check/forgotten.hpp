// Which elements a call forgot, and which it wrote with the very NaN that stood there before.
#pragma once

#include <functional>
#include <span>

#include "check/guard.hpp"

namespace syslab::check {

// After a call on `outputs`, each poisoned before it. Where any still holds the poison, `again` calls once more over
// the second poison: an element that holds the first one even then was written, and becomes a plain NaN. All else is
// left as the first call left it. On the host only.
void settle_forgotten(std::span<GuardedTensor* const> outputs, const std::function<void()>& again);

}  // namespace syslab::check
