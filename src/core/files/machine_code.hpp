// A digest of what a program or library does, not of the file that it came in: two builds of one source at two
// revisions differ in the revision's number alone, and are the same machine code.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace syslab {

// SHA-256 over the sections of an ELF file that are loaded: code, constants, code for GPUs, and what binds them to each
// other and to other libraries (names, relocations), for a pointer in a table may stand there alone. Notes such as the
// build id are left out, and what has no bytes in the file; with every occurrence of `blank` (a revision, say) taken
// for zeros. Empty where the file is no 64-bit little-endian ELF file, or cannot be read.
std::string machine_code_digest(const std::filesystem::path& file, std::string_view blank = {});

// The same of a library that reads nothing else. Empty, too, where the library needs one that is not the system's,
// names folders or filters for those, or imports or exports a known function that reads a file, a library, a process or
// the environment. Decided by the names in its dynamic section: a system call without such a function is not seen.
std::string library_code_digest(const std::filesystem::path& file);

}  // namespace syslab
