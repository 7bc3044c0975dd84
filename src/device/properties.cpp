#include "device/properties.hpp"

#include "device/cuda/runtime.hpp"
#include "device/memory.hpp"
#include "device/parallel.hpp"

namespace syslab::device {

DeviceProperties properties(Place place) {
  if (place.kind == Kind::cuda) return runtime::properties(place.index);
  DeviceProperties made;
  made.name = "CPU";
  made.multiprocessors = thread_count();
  made.memory_bytes = memory_use(place).total;
  return made;
}

}  // namespace syslab::device
