// Sections and symbols of a 64-bit little-endian ELF file: a program, a library, or what a GPU loads (a cubin).
// The file is somebody's: nothing in it is believed before it is known to lie within.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace syslab {

class ElfFile {
 public:
  struct Section {
    std::string_view name;
    std::uint32_t type = 0, link = 0;
    std::uint64_t flags = 0, size = 0;
    std::optional<std::string_view> contents;  // none of what has no bytes in the file, or whose bytes lie outside

    bool is_loaded() const;
    bool has_bytes() const;  // it should: contents are then there, or the file is broken
  };
  struct Symbol {
    std::string_view name;
    std::uint8_t type = 0, other = 0;
    std::uint16_t section = 0;
    std::uint64_t value = 0;  // its place in that section
  };
  struct Relocation {
    std::uint64_t at = 0, addend = 0;
    std::uint32_t type = 0;
    std::string_view symbol;         // its name, or that of its section
    std::string_view section;        // of the symbol; empty: of none in this file
    std::uint64_t symbol_value = 0;  // its place there
  };

  // Nothing where `bytes` are no such file. They are borrowed.
  static std::optional<ElfFile> read(std::string_view bytes);

  std::uint32_t flags() const { return flags_; }  // of the machine: of a cubin which GPU it is for
  const std::vector<Section>& sections() const { return sections_; }
  const std::vector<Symbol>& symbols() const { return symbols_; }  // of its first table
  // Of each entry of the dynamic table with this tag its text: DT_NEEDED the names of libraries, DT_RUNPATH folders.
  std::vector<std::string_view> dynamic_texts(std::int64_t tag) const;
  std::vector<std::string_view> dynamic_names() const;                // of what it imports and exports
  std::vector<Relocation> relocations(const Section& section) const;  // of one of type SHT_RELA or SHT_REL

 private:
  std::uint32_t flags_ = 0;
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
};

}  // namespace syslab
