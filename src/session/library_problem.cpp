#include "session/library_problem.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <span>
#include <string_view>

#include "core/text/printable.hpp"

namespace syslab::cli {
namespace {

constexpr std::array<std::string_view, 5> kOfAttention{"syslab_plugin_abi", "syslab_last_error",
                                                       "syslab_attention_forward", "syslab_attention_backward",
                                                       "syslab_attention_workspace"};
constexpr std::array<std::string_view, 3> kOfOperators{"syslab_plugin_abi", "syslab_last_error", "syslab_operator"};

// Somebody else's file: every place in it is looked at before it is read.
class Elf {
 public:
  explicit Elf(const std::string& path) : file_(path, std::ios::binary) {
    file_.seekg(0, std::ios::end);
    size_ = file_.good() ? static_cast<std::uint64_t>(file_.tellg()) : 0;
  }

  template <typename Item>
  std::vector<Item> read(std::uint64_t at, std::uint64_t count) {
    if (at > size_ || count > (size_ - at) / sizeof(Item)) return {};
    std::vector<Item> items(count);
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(at));
    file_.read(reinterpret_cast<char*>(items.data()), static_cast<std::streamsize>(count * sizeof(Item)));
    return file_.good() ? items : std::vector<Item>{};
  }

 private:
  std::ifstream file_;
  std::uint64_t size_ = 0;
};

// A source, an object file or an archive in its place.
bool is_shared_library(const std::string& path) {
  std::array<char, EI_NIDENT + 2> begin{};  // the type of the file is its next two bytes
  std::ifstream(path, std::ios::binary).read(begin.data(), begin.size());
  const bool is_elf = std::memcmp(begin.data(), ELFMAG, SELFMAG) == 0;
  return is_elf && begin[EI_NIDENT + (begin[EI_DATA] == ELFDATA2MSB ? 1 : 0)] == ET_DYN;
}

bool is_exported(const Elf64_Sym& symbol) {
  const auto binding = ELF64_ST_BIND(symbol.st_info), visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  return symbol.st_shndx != SHN_UNDEF && binding != STB_LOCAL && visibility != STV_HIDDEN && visibility != STV_INTERNAL;
}

std::vector<std::string_view> missing_of(std::span<const std::string_view> wanted,
                                         const std::vector<std::string>& exported) {
  std::vector<std::string_view> missing;
  for (const std::string_view name : wanted) {
    if (std::ranges::find(exported, name) == exported.end()) missing.push_back(name);
  }
  return missing;
}

// Those that a reader may have meant: "found: flash_forward, flash_backward and 12 more".
std::string found_among(const std::vector<std::string>& exported) {
  constexpr std::size_t kFew = 5;
  std::vector<std::string> few;
  const auto hidden_by_cpp = [](const std::string& name) {
    return name.starts_with("_Z") && name.find("syslab_") != std::string::npos;
  };
  const bool mangled = std::ranges::any_of(exported, hidden_by_cpp);
  for (const std::string& name : exported) {
    if (few.size() < kFew && (!mangled || hidden_by_cpp(name)) && name != "_init" && name != "_fini")
      few.push_back(name);
  }
  if (few.empty()) return "it exports nothing";
  std::string text = fmt::format("found: {}", fmt::join(few, ", "));
  if (exported.size() > few.size()) text += fmt::format(" and {} more", exported.size() - few.size());
  if (mangled) text += "; these are C++ names: declare them extern \"C\", as syslab.h does";
  return printable(text);
}

}  // namespace

std::optional<std::vector<std::string>> exported_names(const std::string& path) {
  constexpr std::uint64_t kMostSymbols = 1 << 20;
  Elf elf(path);
  const auto header = elf.read<Elf64_Ehdr>(0, 1);
  if (header.empty() || header[0].e_ident[EI_CLASS] != ELFCLASS64 || header[0].e_shentsize != sizeof(Elf64_Shdr)) {
    return std::nullopt;
  }
  const auto sections = elf.read<Elf64_Shdr>(header[0].e_shoff, header[0].e_shnum);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& strings = sections[section.sh_link];
    const auto symbols = elf.read<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym));
    const auto text = elf.read<char>(strings.sh_offset, strings.sh_size);
    if (text.empty() || text.back() != '\0' || symbols.size() > kMostSymbols) return std::nullopt;
    std::vector<std::string> names;
    for (const Elf64_Sym& symbol : symbols) {
      if (symbol.st_name < text.size() && is_exported(symbol)) names.emplace_back(text.data() + symbol.st_name);
    }
    return names;
  }
  return std::nullopt;
}

std::string symbol_problem(const std::string& path, const std::string& symbol) {
  if (!is_shared_library(path)) return "this is no shared library; build one with -shared -fPIC";
  const std::optional<std::vector<std::string>> exported = exported_names(path);
  if (!exported || std::ranges::find(*exported, symbol) != exported->end()) return {};
  return fmt::format("it exports no '{}'; {}", symbol, found_among(*exported));
}

std::string library_problem(const std::string& path) {
  if (!is_shared_library(path)) {
    return "this is no shared library; build one with -shared -fPIC, or give a Python file as flash.py:Class";
  }
  const std::optional<std::vector<std::string>> exported = exported_names(path);
  if (!exported) return {};
  const auto attention = missing_of(kOfAttention, *exported), operators = missing_of(kOfOperators, *exported);
  const auto has = [&](std::string_view name) { return std::ranges::find(*exported, name) != exported->end(); };
  const bool meant_attention = has("syslab_attention_forward") || has("syslab_attention_backward");
  if (operators.empty() && (!meant_attention || attention.empty())) return {};
  if (attention.empty()) return {};
  if (meant_attention)
    return fmt::format("it does not export {}; syslab.h declares what it must", fmt::join(attention, ", "));
  if (has("syslab_operator")) {
    return fmt::format("it does not export {}; syslab.h declares what it must", fmt::join(operators, ", "));
  }
  return fmt::format("it exports no {} and no syslab_operator; {}", fmt::join(attention, ", "), found_among(*exported));
}

}  // namespace syslab::cli
