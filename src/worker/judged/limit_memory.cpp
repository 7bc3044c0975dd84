#include "worker/judged/limit_memory.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "core/error.hpp"
#include "core/process/own_memory.hpp"

namespace syslab::worker {
namespace {

struct rlimit own_limit() {
  struct rlimit limit {};
  ::getrlimit(RLIMIT_AS, &limit);
  return limit;
}

void set(const struct rlimit& limit) {
  if (::setrlimit(RLIMIT_AS, &limit) != 0) throw_errno(ErrorKind::internal, "limit the memory", errno, "setrlimit");
}

rlim_t beyond_own(std::uint64_t bytes, rlim_t most) {
  const rlim_t wanted = own_memory("VmSize").value_or(0) + bytes;
  return most == RLIM_INFINITY ? wanted : std::min(wanted, most);
}

}  // namespace

void limit_memory(std::uint64_t limit_bytes) {
  struct rlimit limit = own_limit();
  limit.rlim_cur = limit_bytes == 0 ? limit.rlim_max : beyond_own(limit_bytes, limit.rlim_max);
  set(limit);
}

void limit_memory_for_good(std::uint64_t limit_bytes) {
  if (limit_bytes == 0) return limit_memory(0);
  const rlim_t most = beyond_own(limit_bytes, own_limit().rlim_max);
  set({most, most});
}

}  // namespace syslab::worker
