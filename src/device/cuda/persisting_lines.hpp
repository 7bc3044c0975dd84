// Lines of a GPU's L2 that somebody had set to stay there.
#pragma once

#include "device/device.hpp"

namespace syslab::device {

// From now on they are as any others, in this process's context; on the CPU there are none.
void forget_persisting_lines(Place place);

}  // namespace syslab::device
