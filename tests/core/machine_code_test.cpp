#include "core/files/machine_code.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/temporary_folder.hpp"

namespace syslab {
namespace {

// A revision, as a build has it among its constants.
const char* const volatile kRevision = "rev:4f2c90ab17de";

std::string contents(const std::string& file) {
  std::ostringstream bytes;
  bytes << std::ifstream(file, std::ios::binary).rdbuf();
  return std::move(bytes).str();
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

// Where the first section of that type that is loaded begins.
std::size_t begin_of(const std::string& bytes, std::uint32_t type) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, bytes.data() + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type == type && (section.sh_flags & SHF_ALLOC) != 0) return section.sh_offset;
  }
  ADD_FAILURE() << "no section of type " << type;
  return 0;
}

// A table of functions, or an import, may change in its relocation or its name alone.
TEST(MachineCode, IsAnotherWhereOnePointerOrNameIs) {
  const test::TemporaryFolder folder;
  const std::string other = folder / "other", bytes = contents("/proc/self/exe");
  const auto with_a_change_in = [&](std::uint32_t type) {
    std::string changed = bytes;
    changed[begin_of(bytes, type) + 1] ^= 1;
    write(other, changed);
    return machine_code_digest(other);
  };
  const std::string ours = machine_code_digest("/proc/self/exe");
  for (const std::uint32_t type : {SHT_RELA, SHT_DYNSYM, SHT_STRTAB, SHT_DYNAMIC, SHT_INIT_ARRAY}) {
    EXPECT_NE(with_a_change_in(type), ours) << type;
  }
  EXPECT_EQ(with_a_change_in(SHT_NOTE), ours);
}

// The library that a function of this process came from.
std::string library_of(const void* function) {
  Dl_info found{};
  return ::dladdr(function, &found) != 0 && found.dli_fname != nullptr ? found.dli_fname : "";
}

// Two copies of a library that reads files, or needs other libraries, need not do the same.
TEST(MachineCode, OfALibraryIsKnownOnlyIfItReadsNothingElse) {
  const std::string computes = library_of(reinterpret_cast<const void*>(static_cast<double (*)(double)>(&::cos)));
  const std::string opens = library_of(reinterpret_cast<const void*>(&::fopen));
  ASSERT_NE(computes, opens);
  EXPECT_EQ(library_code_digest(computes), machine_code_digest(computes));
  EXPECT_EQ(library_code_digest(computes).size(), 64U);
  EXPECT_EQ(library_code_digest(opens), "");
  EXPECT_NE(machine_code_digest(opens), "");
}

TEST(MachineCode, OfALibraryThatImportsOpenIsUnknown) {
  const char* const library = std::getenv("SYSLAB_TEST_OPENS_BESIDE");
  if (library == nullptr) GTEST_SKIP() << "meson test names the library";
  EXPECT_EQ(library_code_digest(library), "");
  EXPECT_NE(machine_code_digest(library), "");
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
