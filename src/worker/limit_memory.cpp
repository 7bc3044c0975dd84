#include "worker/limit_memory.hpp"

#include <sys/resource.h>

#include <cerrno>

#include "core/error.hpp"
#include "core/own_memory.hpp"

namespace syslab::worker {

void limit_memory(std::uint64_t limit_bytes) {
  struct rlimit limit {};
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = limit_bytes == 0 ? limit.rlim_max : own_memory("VmSize").value_or(0) + limit_bytes;
  if (limit.rlim_max != RLIM_INFINITY && limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_AS, &limit) != 0) throw_errno(ErrorKind::internal, "limit the memory", errno, "setrlimit");
}

}  // namespace syslab::worker
