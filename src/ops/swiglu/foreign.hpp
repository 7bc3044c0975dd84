// An implementation in another process as a rung of the ladder.
#pragma once

#include "ops/foreign.hpp"
#include "ops/swiglu/swiglu.hpp"

namespace syslab::swiglu {

// "swiglu_forward": gate, up; out. "swiglu_backward": gate, up, dout; dgate, dup.
Rung foreign_rung(const ops::ForeignImplementation& mine);

}  // namespace syslab::swiglu
