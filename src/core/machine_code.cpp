#include "core/machine_code.hpp"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/elf_file.hpp"
#include "core/hash.hpp"

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

}  // namespace

std::string machine_code_digest(const std::filesystem::path& file, std::string_view blank) {
  std::string bytes = contents_of(file);
  blank_out(bytes, blank);
  const std::optional<ElfFile> elf = ElfFile::read(bytes);
  if (!elf) return {};
  Sha256 sha;
  bool any = false;
  for (const ElfFile::Section& one : elf->sections()) {
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

}  // namespace syslab
