#include "core/files/elf_file.hpp"

#include <elf.h>

#include <cstring>

namespace syslab {
namespace {

bool lies_within(std::string_view bytes, std::uint64_t at, std::uint64_t size) {
  return at <= bytes.size() && size <= bytes.size() - at;
}

template <typename T>
std::optional<T> read_at(std::string_view bytes, std::uint64_t at) {
  if (!lies_within(bytes, at, sizeof(T))) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string_view text_at(std::string_view table, std::uint64_t at) {
  if (at >= table.size()) return {};
  const std::string_view rest = table.substr(at);
  return rest.substr(0, rest.find('\0'));
}

}  // namespace

bool ElfFile::Section::is_loaded() const { return type != SHT_NULL && (flags & SHF_ALLOC) != 0; }

bool ElfFile::Section::has_bytes() const { return type != SHT_NULL && type != SHT_NOBITS; }

std::optional<ElfFile> ElfFile::read(std::string_view bytes) {
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_shentsize != sizeof(Elf64_Shdr) ||
      !lies_within(bytes, header->e_shoff, std::uint64_t{header->e_shnum} * sizeof(Elf64_Shdr))) {
    return std::nullopt;
  }
  ElfFile file;
  file.flags_ = header->e_flags;
  std::vector<std::uint32_t> names;
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const Elf64_Shdr one = *read_at<Elf64_Shdr>(bytes, header->e_shoff + i * sizeof(Elf64_Shdr));
    Section section{.type = one.sh_type, .link = one.sh_link, .flags = one.sh_flags, .size = one.sh_size};
    if (section.has_bytes() && lies_within(bytes, one.sh_offset, one.sh_size)) {
      section.contents = bytes.substr(one.sh_offset, one.sh_size);
    }
    names.push_back(one.sh_name);
    file.sections_.push_back(section);
  }
  const auto contents_of = [&](std::uint64_t index) {
    return index < file.sections_.size() ? file.sections_[index].contents.value_or("") : std::string_view();
  };
  for (std::size_t i = 0; i < names.size(); ++i) {
    file.sections_[i].name = text_at(contents_of(header->e_shstrndx), names[i]);
  }
  for (const Section& section : file.sections_) {
    if (section.type != SHT_SYMTAB || !section.contents) continue;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.contents->size(); at += sizeof(Elf64_Sym)) {
      const Elf64_Sym one = *read_at<Elf64_Sym>(*section.contents, at);
      Symbol symbol{text_at(contents_of(section.link), one.st_name),
                    static_cast<std::uint8_t>(ELF64_ST_TYPE(one.st_info)), one.st_other, one.st_shndx, one.st_value};
      if (symbol.type == STT_SECTION && one.st_shndx < file.sections_.size()) {
        symbol.name = file.sections_[one.st_shndx].name;
      }
      file.symbols_.push_back(symbol);
    }
    break;
  }
  return file;
}

std::vector<std::string_view> ElfFile::dynamic_texts(std::int64_t tag) const {
  std::vector<std::string_view> found;
  for (const Section& section : sections_) {
    if (section.type != SHT_DYNAMIC || !section.contents || section.link >= sections_.size()) continue;
    const std::string_view texts = sections_[section.link].contents.value_or("");
    for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= section.contents->size(); at += sizeof(Elf64_Dyn)) {
      const Elf64_Dyn one = *read_at<Elf64_Dyn>(*section.contents, at);
      if (one.d_tag == DT_NULL) break;
      if (one.d_tag == tag) found.push_back(text_at(texts, one.d_un.d_val));
    }
  }
  return found;
}

std::vector<std::string_view> ElfFile::dynamic_names() const {
  std::vector<std::string_view> found;
  for (const Section& section : sections_) {
    if (section.type != SHT_DYNSYM || !section.contents || section.link >= sections_.size()) continue;
    const std::string_view texts = sections_[section.link].contents.value_or("");
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.contents->size(); at += sizeof(Elf64_Sym)) {
      found.push_back(text_at(texts, read_at<Elf64_Sym>(*section.contents, at)->st_name));
    }
  }
  return found;
}

std::vector<ElfFile::Relocation> ElfFile::relocations(const Section& section) const {
  std::vector<Relocation> found;
  const bool with_addend = section.type == SHT_RELA;
  if (!section.contents || (!with_addend && section.type != SHT_REL)) return found;
  const std::size_t step = with_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
  for (std::uint64_t at = 0; at + step <= section.contents->size(); at += step) {
    Elf64_Rela one{};
    std::memcpy(&one, section.contents->data() + at, step);
    const std::uint64_t symbol = ELF64_R_SYM(one.r_info);
    found.push_back({one.r_offset,
                     static_cast<std::uint64_t>(one.r_addend),
                     static_cast<std::uint32_t>(ELF64_R_TYPE(one.r_info)),
                     {},
                     {},
                     0});
    if (symbol >= symbols_.size()) continue;
    found.back().symbol = symbols_[symbol].name;
    found.back().symbol_value = symbols_[symbol].value;
    if (symbols_[symbol].section < sections_.size()) found.back().section = sections_[symbols_[symbol].section].name;
  }
  return found;
}

}  // namespace syslab
