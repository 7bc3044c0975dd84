#include "core/machine_code.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/temporary_folder.hpp"

namespace syslab {
namespace {

// A revision, as a build has it among its constants.
const char* const volatile kRevision = "rev:4f2c90ab17de";

std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::string& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

TEST(MachineCode, IsTheSameOfTwoBuildsThatDifferInTheirRevisionAlone) {
  ASSERT_EQ(kRevision[0], 'r');  // it is used, and so kept
  const test::TemporaryFolder folder;
  const std::string other = folder / "other", ours = "rev:4f2c90ab17de";
  const std::string theirs = "rev:" + std::string(12, '0');  // made here: as a constant it would be blanked, too
  std::string bytes = contents("/proc/self/exe");
  for (std::size_t at = bytes.find(ours); at != std::string::npos; at = bytes.find(ours, at))
    bytes.replace(at, ours.size(), theirs);
  write(other, bytes);
  EXPECT_NE(machine_code_digest("/proc/self/exe"), machine_code_digest(other));
  EXPECT_EQ(machine_code_digest("/proc/self/exe", ours), machine_code_digest(other, theirs));
  EXPECT_EQ(machine_code_digest("/proc/self/exe").size(), 64U);
  // What is not loaded is not code.
  write(other, contents("/proc/self/exe") + "behind the sections");
  EXPECT_EQ(machine_code_digest("/proc/self/exe"), machine_code_digest(other));
}

TEST(MachineCode, OfNoProgramIsNone) {
  const test::TemporaryFolder folder;
  const std::string file = folder / "file";
  for (const std::string& text :
       {std::string(), std::string("#!/bin/sh\n"), contents("/proc/self/exe").substr(0, 4000)}) {
    write(file, text);
    EXPECT_EQ(machine_code_digest(file), "");
  }
  EXPECT_EQ(machine_code_digest(folder / "nothing"), "");
}

}  // namespace
}  // namespace syslab
