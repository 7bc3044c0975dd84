#include "session/library_problem.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/temporary_folder.hpp"

namespace syslab::cli {
namespace {

// A shared library that every machine with a loader has: the one that a function of C's lies in.
std::string some_library() {
  Dl_info found{};
  EXPECT_NE(dladdr(reinterpret_cast<void*>(&std::fclose), &found), 0);
  return found.dli_fname;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(LibraryProblem, NamesWhatALibraryExports) {
  const auto names = exported_names(some_library());
  ASSERT_TRUE(names);
  EXPECT_NE(std::ranges::find(*names, "fclose"), names->end());
  EXPECT_EQ(std::ranges::find(*names, "syslab_operator"), names->end());
}

TEST(LibraryProblem, SaysWhatIsMissingAndWhatIsThere) {
  const std::string problem = library_problem(some_library());
  EXPECT_NE(problem.find("exports no syslab_plugin_abi, syslab_last_error, syslab_attention_forward"),
            std::string::npos)
      << problem;
  EXPECT_NE(problem.find("and no syslab_operator; found: "), std::string::npos) << problem;
  EXPECT_NE(problem.find(" more"), std::string::npos) << problem;
}

// Whatever is in the file: it is refused or taken, never read beyond its end.
TEST(LibraryProblem, ADamagedFileIsNobodysEnd) {
  const test::TemporaryFolder folder;
  const std::string whole = bytes_of(some_library()), path = folder / "damaged.so";
  for (std::size_t at = 16; at < 64; ++at) {
    std::string damaged = whole.substr(0, 1 << 16);
    damaged[at] = static_cast<char>(0xff);
    std::ofstream(path, std::ios::binary) << damaged;
    static_cast<void>(library_problem(path));
    static_cast<void>(exported_names(path));
  }
  std::ofstream(path, std::ios::binary) << "int main;";
  EXPECT_NE(library_problem(path).find("this is no shared library"), std::string::npos);
}

}  // namespace
}  // namespace syslab::cli
