#include "core/machine_code.hpp"

#include <elf.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include "core/hash.hpp"

namespace syslab {
namespace {

std::string contents_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The file is somebody's: nothing in it is believed before it is known to lie within.
bool lies_within(const std::string& bytes, std::uint64_t at, std::uint64_t size) {
  return at <= bytes.size() && size <= bytes.size() - at;
}

template <typename T>
std::optional<T> read_at(const std::string& bytes, std::uint64_t at) {
  if (!lies_within(bytes, at, sizeof(T))) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void blank_out(std::string& bytes, std::string_view word) {
  if (word.empty()) return;
  for (std::size_t at = bytes.find(word); at != std::string::npos; at = bytes.find(word, at + word.size())) {
    std::memset(bytes.data() + at, 0, word.size());
  }
}

std::string_view name_of(const std::string& bytes, const Elf64_Shdr& names, std::uint32_t at) {
  if (at >= names.sh_size || !lies_within(bytes, names.sh_offset, names.sh_size)) return {};
  const std::string_view all(bytes.data() + names.sh_offset, names.sh_size);
  return all.substr(at, all.find('\0', at) - at);
}

}  // namespace

std::string machine_code_digest(const std::filesystem::path& file, std::string_view blank) {
  std::string bytes = contents_of(file);
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_shentsize != sizeof(Elf64_Shdr)) {
    return {};
  }
  const auto section = [&](std::uint64_t index) {
    return read_at<Elf64_Shdr>(bytes, header->e_shoff + index * sizeof(Elf64_Shdr));
  };
  const auto names = section(header->e_shstrndx);
  if (!names) return {};
  blank_out(bytes, blank);
  Sha256 sha;
  bool any = false;
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto one = section(i);
    if (!one) return {};
    const bool loaded = one->sh_type != SHT_NULL && one->sh_type != SHT_NOBITS && one->sh_type != SHT_NOTE &&
                        (one->sh_flags & SHF_ALLOC) != 0;
    if (!loaded) continue;
    if (!lies_within(bytes, one->sh_offset, one->sh_size)) return {};
    const std::string_view name = name_of(bytes, *names, one->sh_name);
    if (name.starts_with(".note")) continue;
    sha.update(name);
    sha.update(std::string_view("\0", 1));
    sha.update(std::string_view(bytes.data() + one->sh_offset, one->sh_size));
    any = true;
  }
  if (!any) return {};
  std::string hex;
  for (const std::uint8_t byte : sha.finish()) {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace syslab
