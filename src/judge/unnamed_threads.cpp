#include "judge/unnamed_threads.hpp"

#include <cstdlib>
#include <fstream>

#include "core/error.hpp"

namespace syslab::judge {

// The library, put in by the build.
extern const unsigned char kUnnamedThreadsLibrary[];
extern const unsigned long kUnnamedThreadsLibraryBytes;

std::string preload_unnamed_threads(const std::string& folder) {
  std::string path = folder + "/unnamed_threads.so";
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(kUnnamedThreadsLibrary),
             static_cast<std::streamsize>(kUnnamedThreadsLibraryBytes));
  file.close();
  if (!file) throw Error(ErrorKind::internal, "write '" + path + "' for a judged process on a GPU");
  const char* const before = std::getenv("LD_PRELOAD");
  return before == nullptr || *before == '\0' ? path : path + ":" + before;
}

}  // namespace syslab::judge
