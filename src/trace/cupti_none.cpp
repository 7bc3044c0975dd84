// Replaces cupti.cpp in builds without the CUDA toolkit.
#include "trace/cupti.hpp"

namespace syslab::trace {

std::unique_ptr<CuptiSession> CuptiSession::start(std::string& why) {
  why = "this build has no CUDA";
  return nullptr;
}

}  // namespace syslab::trace
