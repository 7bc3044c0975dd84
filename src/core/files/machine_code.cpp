#include "core/files/machine_code.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/files/elf_file.hpp"
#include "core/files/hash.hpp"

namespace syslab {
namespace {

std::string contents_of(const std::filesystem::path& file) {
  std::ostringstream bytes;
  bytes << std::ifstream(file, std::ios::binary).rdbuf();
  return std::move(bytes).str();
}

void blank_out(std::string& bytes, std::string_view word) {
  if (word.empty()) return;
  for (std::size_t at = bytes.find(word); at != std::string::npos; at = bytes.find(word, at + word.size())) {
    std::memset(bytes.data() + at, 0, word.size());
  }
}

// What every library may need, and what reads nothing but its arguments.
constexpr std::string_view kOfTheSystem =
    " libc.so.6 libm.so.6 libmvec.so.1 libstdc++.so.6 libgcc_s.so.1 libgomp.so.1 libpthread.so.0 libatomic.so.1 "
    "libdl.so.2 librt.so.1 ld-linux-x86-64.so.2 ";
constexpr std::string_view kReads =
    " dlopen dlmopen dlsym dladdr dl_iterate_phdr open open64 openat openat64 __open_2 __open64_2 __openat_2 "
    "__openat64_2 creat creat64 fopen fopen64 freopen freopen64 popen system execl execle execlp execv execve execvp "
    "execvpe fexecve posix_spawn posix_spawnp fork vfork clone syscall mmap mmap64 shm_open shmat opendir scandir "
    "scandir64 nftw nftw64 fts_open glob glob64 getenv environ secure_getenv __environ __secure_getenv connect socket "
    "readlink readlinkat getauxval realpath stat stat64 lstat lstat64 fstatat fstatat64 statx __xstat __xstat64 "
    "__lxstat "
    "__lxstat64 __fxstatat __fxstatat64 access faccessat euidaccess execveat dlvsym __open __open64 getcwd "
    "program_invocation_name ";
// In the mangled names of what the C++ library reads files by.
constexpr std::string_view kStreams[]{"basic_filebuf", "basic_ifstream", "basic_fstream", "10filesystem"};

bool is_one_of(std::string_view names, std::string_view name) {
  return !name.empty() && names.find(' ' + std::string(name) + ' ') != names.npos;
}

bool reads_elsewhere(const ElfFile& elf) {
  for (const std::int64_t names_others : {DT_RPATH, DT_RUNPATH, DT_FILTER, DT_AUXILIARY}) {
    if (!elf.dynamic_texts(names_others).empty()) return true;
  }
  const auto is_foreign = [](std::string_view library) { return !is_one_of(kOfTheSystem, library); };
  const auto reads = [](std::string_view name) {
    return is_one_of(kReads, name) ||
           std::ranges::any_of(kStreams, [&](std::string_view of) { return name.find(of) != name.npos; });
  };
  return std::ranges::any_of(elf.dynamic_texts(DT_NEEDED), is_foreign) ||
         std::ranges::any_of(elf.dynamic_names(), reads);
}

std::string digest_of(const ElfFile& elf) {
  Sha256 sha;
  bool any = false;
  for (const ElfFile::Section& one : elf.sections()) {
    if (!one.is_loaded() || !one.has_bytes() || one.type == SHT_NOTE) continue;
    if (!one.contents) return {};
    if (one.name.starts_with(".note")) continue;
    sha.update(one.name);
    sha.update(std::string_view("\0", 1));
    sha.update(*one.contents);
    any = true;
  }
  if (!any) return {};
  return hex_of(sha.finish());
}

}  // namespace

std::string library_code_digest(const std::filesystem::path& file) {
  const std::string bytes = contents_of(file);
  const std::optional<ElfFile> elf = ElfFile::read(bytes);
  return !elf || reads_elsewhere(*elf) ? "" : digest_of(*elf);
}

std::string machine_code_digest(const std::filesystem::path& file, std::string_view blank) {
  std::string bytes = contents_of(file);
  blank_out(bytes, blank);
  const std::optional<ElfFile> elf = ElfFile::read(bytes);
  return elf ? digest_of(*elf) : "";
}

}  // namespace syslab
