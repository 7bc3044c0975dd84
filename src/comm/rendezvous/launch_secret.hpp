// What the processes of one launch over TCP know and nobody else does.
#pragma once

#include <string>

#include "comm/rendezvous/launch_environment.hpp"
#include "core/files/mac.hpp"

namespace syslab::comm {

inline constexpr const char* kLaunchSecret = "SYSLAB_LAUNCH_SECRET";

// 64 hexadecimal digits in SYSLAB_LAUNCH_SECRET; else this user's secret "launch" (core/files/secret.hpp), which is the
// same on all hosts that share the user's home folder. Error(usage) for digits that are none, Error(config) as secret()
// does.
Key launch_secret(const Variables& variables);

// What to do where it differs between hosts, with the line to type.
std::string launch_secret_remedy();

}  // namespace syslab::comm
