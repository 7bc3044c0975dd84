// Who writes an attempt, so that a later start can tell whether that process still lives.
#pragma once

#include <cstdint>
#include <string>

#include "core/text/json.hpp"

namespace syslab::store {

// A process, named so that neither a reused pid, a reboot nor a container can make another pass for it.
struct Writer {
  std::string host;
  std::string boot_id;        // of the kernel's current boot
  std::string pid_namespace;  // "pid:[4026531836]": containers of one host count pids apart
  std::int64_t pid = 0;
  std::int64_t start_ticks = 0;  // since boot
};

const Writer& this_writer();
Json to_json(const Writer& writer);
Writer writer_from_json(const Json& json);  // missing fields stay empty

enum class Liveness { alive, dead, unknown };
// By /proc, for processes that this one can see; `unknown` for those of another boot, host or pid namespace.
Liveness liveness(const Writer& writer);

// Without sight of the writer's process, this long without a heartbeat (they come every 5 s) means that it is gone.
inline constexpr double kSilenceSeconds = 60;
bool is_gone(const Writer& writer, double silent_seconds);
// "process 4711 on this machine"
std::string describe(const Writer& writer);

}  // namespace syslab::store
