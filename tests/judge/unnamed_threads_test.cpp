#include "judge/unnamed_threads.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "core/process/process.hpp"
#include "judge/private_folder.hpp"
#include "judge/walls.hpp"

namespace syslab::judge {
namespace {

// As CUDA's driver: by fopen(), which Python's own open() does not use.
constexpr const char* kNamesItself =
    "import ctypes, threading\n"
    "c = ctypes.CDLL(None)\n"
    "c.fopen.restype = ctypes.c_void_p\n"
    "opened = lambda path, mode: c.fopen(path.encode(), mode) is not None\n"
    "mine = f'/proc/self/task/{threading.get_native_id()}/comm'\n"
    "print(int(opened(mine, b'w')), int(opened('/proc/self/comm', b'w')), int(opened(mine, b'r')))\n";

std::string told(const char* preload, const std::string& folder) {
  Walls walls({.profile = Profile::python, .gpu = true, .writable = folder});
  SpawnOptions options;
  options.argv = {"python3", "-c", kNamesItself};
  options.capture_stderr = false;
  options.environment = {{"LD_PRELOAD", preload}};
  options.confinement = walls.confinement();
  Process process = Process::spawn(options);
  std::string said;
  char chunk[64];
  for (ssize_t got = 0; (got = ::read(process.from_child(), chunk, sizeof chunk)) > 0;) {
    said.append(chunk, static_cast<std::size_t>(got));
  }
  process.wait();
  return said;
}

TEST(UnnamedThreads, AThreadIsNamedIntoNothingAndNothingElseIsWritten) {
  if (!missing_walls().empty()) GTEST_SKIP() << missing_walls().front();
  const PrivateFolder folder;
  EXPECT_EQ(told("", folder.path()), "0 0 1\n");
  EXPECT_EQ(told(preload_unnamed_threads(folder.path()).c_str(), folder.path()), "1 0 1\n");
}

TEST(UnnamedThreads, WhatIsPreloadedAnywayStays) {
  const PrivateFolder folder;
  ::setenv("LD_PRELOAD", "/there/other.so", 1);
  EXPECT_EQ(preload_unnamed_threads(folder.path()), folder.path() + "/unnamed_threads.so:/there/other.so");
  ::unsetenv("LD_PRELOAD");
  EXPECT_EQ(preload_unnamed_threads(folder.path()), folder.path() + "/unnamed_threads.so");
}

}  // namespace
}  // namespace syslab::judge
