#include "trace/kernel_code.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/files/elf_file.hpp"
#include "core/files/hash.hpp"
#include "trace/cupti_records.hpp"

namespace syslab::trace {
namespace {

constexpr std::uint32_t kWhichGpu = 0x00ffffff;  // the byte above differs with -lineinfo
constexpr std::uint8_t kEntry = 0x10;            // among st_other: a kernel, not a function of the device

std::set<std::string> kernels_in(const ElfFile& elf) {
  std::set<std::string> names;
  for (const ElfFile::Symbol& symbol : elf.symbols()) {
    if (symbol.type == STT_FUNC && (symbol.other & kEntry) != 0) names.emplace(symbol.name);
  }
  return names;
}

// ".text._Z3runPf" is _Z3runPf's.
bool is_of(std::string_view section, std::string_view kernel) {
  return section.size() > kernel.size() && section.ends_with(kernel) &&
         section[section.size() - kernel.size() - 1] == '.';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The length of the name that begins there if nvcc made it for what a file keeps to itself: _GLOBAL__N__ or _INTERNAL_,
// eight digits made of the file's path, the length of the file's name, that name, and something of its content. 0: no.
std::size_t length_of_own(std::string_view text, std::size_t length) {
  for (const std::string_view mark : {"_GLOBAL__N__", "_INTERNAL_"}) {
    if (!text.starts_with(mark) || length > text.size()) continue;
    std::size_t at = mark.size() + 8, file = 0;
    if (at >= length || text[at] != '_') continue;
    for (++at; at < length && is_digit(text[at]) && file < length; ++at) file = 10 * file + (text[at] - '0');
    if (file > 0 && at + 1 + file < length && text[at] == '_') return length;
  }
  return 0;
}

// A name as it would be wherever its source lay: two builds in two folders call the same kernel differently.
std::string without_place(std::string_view name) {
  std::string same;
  for (std::size_t i = 0; i < name.size();) {
    std::size_t length = 0, digits = 0;
    while (i + digits < name.size() && digits < 4 && is_digit(name[i + digits])) {
      length = 10 * length + static_cast<std::size_t>(name[i + digits++] - '0');
    }
    const std::size_t own = digits == 0 ? 0 : length_of_own(name.substr(i + digits), length);
    if (own > 0) {
      same += "(own)";
      i += digits + own;
    } else {
      same += name[i++];
    }
  }
  return same;
}

class Digest {
 public:
  void add(std::string_view text) {
    add(text.size());
    sha_.update(text);
  }
  void add(std::uint64_t number) { sha_.update(fmt::format("{} ", number)); }
  std::string finish() { return hex_of(sha_.finish()); }

 private:
  Sha256 sha_;
};

}  // namespace

std::set<std::string> kernels_of_cubin(std::string_view cubin) {
  const std::optional<ElfFile> elf = ElfFile::read(cubin);
  return elf ? kernels_in(*elf) : std::set<std::string>();
}

std::string kernel_code_digest(std::string_view cubin, std::string_view kernel) {
  const std::optional<ElfFile> elf = ElfFile::read(cubin);
  if (!elf) return {};
  const std::set<std::string> kernels = kernels_in(*elf);
  if (!kernels.contains(std::string(kernel))) return {};
  const auto needed = [&](std::string_view section) {
    return is_of(section, kernel) ||
           std::ranges::none_of(kernels, [&](const std::string& one) { return is_of(section, one); });
  };
  // By name: in which order a compiler writes sections is not what runs.
  std::vector<std::pair<std::string_view, const ElfFile::Section*>> parts;
  for (const ElfFile::Section& section : elf->sections()) {
    if (!section.is_loaded() || section.type == SHT_NOTE || section.name.starts_with(".note") ||
        !needed(section.name)) {
      continue;
    }
    if (section.has_bytes() && !section.contents) return {};
    parts.emplace_back(section.name, &section);
  }
  std::ranges::sort(parts, {}, [](const auto& part) { return without_place(part.first); });
  Digest digest;
  digest.add(elf->flags() & kWhichGpu);
  for (const auto& [name, section] : parts) {
    digest.add(without_place(name));
    digest.add(section->size);
    if (section->contents) digest.add(*section->contents);
    for (const ElfFile::Section& other : elf->sections()) {
      if (other.name != fmt::format(".rela{}", name) && other.name != fmt::format(".rel{}", name)) continue;
      for (const ElfFile::Relocation& one : elf->relocations(other)) {
        digest.add(one.at);
        digest.add(one.type);
        digest.add(one.addend);
        digest.add(without_place(one.symbol));
        digest.add(without_place(one.section));
        digest.add(one.symbol_value);
      }
    }
  }
  return digest.finish();
}

std::string LoadedCode::code_of(const std::string& symbol) const {
  std::set<std::string> codes;
  for (const std::string& cubin : cubins_) {
    if (std::string code = kernel_code_digest(cubin, symbol); !code.empty()) codes.insert(std::move(code));
  }
  if (codes.size() < 2) return codes.empty() ? "" : *codes.begin();
  Digest all;
  for (const std::string& code : codes) all.add(code);
  return all.finish();
}

CodeOfCall LoadedCode::of(std::vector<RanKernel> launches) const {
  std::ranges::stable_sort(launches, {}, &RanKernel::order);
  CodeOfCall call;
  std::map<std::string, std::size_t> places;
  Digest digest;
  for (const RanKernel& one : launches) {
    const auto [place, is_new] = places.emplace(one.symbol, call.kernels.size());
    if (is_new) call.kernels.push_back({readable_kernel_name(one.symbol.c_str()), code_of(one.symbol), 0});
    CodeOfCall::Kernel& kernel = call.kernels[place->second];
    ++kernel.launches;
    if (kernel.code.empty() && call.why.empty()) {
      call.why = fmt::format("the code of {} was not told: it was loaded before anybody listened, or is no cubin",
                             kernel.name);
    }
    digest.add(without_place(one.symbol));
    digest.add(kernel.code);
    for (const auto& size : {one.grid, one.block, one.cluster}) {
      for (const std::int32_t n : size) digest.add(static_cast<std::uint64_t>(n));
    }
    digest.add(static_cast<std::uint64_t>(one.shared_bytes));
    digest.add(one.registers);
  }
  if (launches.empty()) call.why = "no kernel ran";
  if (call.why.empty()) call.digest = digest.finish();
  return call;
}

}  // namespace syslab::trace
