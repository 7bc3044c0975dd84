// The rungs of the copy, listed by copy.cpp.
#pragma once

#include "ops/copy/copy.hpp"

namespace syslab::copy {

Rung loop_rung();
Rung memcpy_rung();
Rung streaming_rung();
Rung threads_rung();
Rung threads_streaming_rung();
Rung cuda_memcpy_rung();
Rung cuda_vectors_rung();

}  // namespace syslab::copy
