#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "submission/folder.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::submission {
namespace {

// An interpreter that somebody handed in (check --watch unpacks again): it writes down what it got.
constexpr const char* kCurious = "#!/bin/sh\nenv > \"$4/seen\"\nulimit -v > \"$4/limit\"\n";

TEST(Unpacking, TellsTheInterpreterNoSecretAndLimitsItsMemory) {
  const test::TemporaryFolder folder;
  const std::filesystem::path python = folder / "python", unpacked = folder / "unpacked";
  test::write_bytes(python, kCurious);
  ::chmod(python.c_str(), 0700);
  std::filesystem::create_directory(unpacked);
  ::setenv("SYSLAB_PYTHON", python.c_str(), 1);
  ::setenv("SYSLAB_LAUNCH_SECRET", "of-launches", 1);
  ::setenv("SYSLAB_WALLS_HIDE", "/of-others", 1);
  unpack(folder / "x.zip", unpacked);
  for (const char* name : {"SYSLAB_PYTHON", "SYSLAB_LAUNCH_SECRET", "SYSLAB_WALLS_HIDE"}) ::unsetenv(name);
  const std::string seen = test::bytes_of(unpacked / "seen");
  EXPECT_NE(seen.find("SYSLAB_ZIP="), std::string::npos) << seen;
  EXPECT_EQ(seen.find("of-launches"), std::string::npos) << seen;
  EXPECT_EQ(seen.find("/of-others"), std::string::npos) << seen;
  EXPECT_EQ(test::bytes_of(unpacked / "limit"), "2097152\n");
}

}  // namespace
}  // namespace syslab::submission
