// Replaces cupti.cpp and cupti_code.cpp in builds without the CUDA toolkit.
#include "trace/code_watch.hpp"
#include "trace/cupti.hpp"

namespace syslab::trace {

std::unique_ptr<CuptiSession> CuptiSession::start(std::string& why) {
  why = "this build has no CUDA";
  return nullptr;
}

std::unique_ptr<CodeWatch> CodeWatch::start(std::string& why) {
  why = "this build has no CUDA";
  return nullptr;
}

}  // namespace syslab::trace
