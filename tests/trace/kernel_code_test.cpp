// Cubins are made here, section by section, as nvcc lays them out: no toolkit is needed.
#include "trace/kernel_code.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

namespace syslab::trace {
namespace {

struct Part {
  std::string name;
  std::uint32_t type = SHT_PROGBITS;
  std::uint64_t flags = SHF_ALLOC;
  std::string bytes;
  std::uint32_t link = 0;
};

template <typename T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

constexpr std::uint8_t kKernel = 0x10;

// Kernels "first" and "second" with what they share.
struct Cubin {
  std::string first = "first's instructions", second = "second's instructions", constants = "shared constants";
  std::string variable = "table";  // that first's relocation names
  std::uint64_t variable_bytes = 64;
  std::uint64_t variable_at = 0;
  std::uint32_t machine_flags = 0x5a;
  std::string note = "compiled on Monday";
  bool other_order = false;
  std::string kernel = "first";

  std::string bytes() const {
    std::string names(1, '\0'), texts(1, '\0');
    const auto place_in = [](std::string& table, const std::string& text) {
      const auto at = static_cast<std::uint32_t>(table.size());
      table += text + '\0';
      return at;
    };
    std::string symbols = bytes_of(Elf64_Sym{});
    const auto symbol = [&](const std::string& name, unsigned char type, unsigned char other, std::uint64_t at = 0) {
      Elf64_Sym one{};
      one.st_value = at;
      one.st_name = place_in(texts, name);
      one.st_info = ELF64_ST_INFO(STB_GLOBAL, type);
      one.st_other = other;
      symbols += bytes_of(one);
    };
    symbol(kernel, STT_FUNC, kKernel);
    symbol("second", STT_FUNC, kKernel);
    symbol("helper", STT_FUNC, 0);
    symbol(variable, STT_OBJECT, 0, variable_at);
    Elf64_Rela use{};
    use.r_offset = 8;
    use.r_info = ELF64_R_INFO(std::uint64_t{4}, 2);
    std::vector<Part> parts{{"", SHT_NULL, 0, ""},
                            {".text." + kernel, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, first},
                            {".rela.text." + kernel, SHT_RELA, SHF_INFO_LINK, bytes_of(use)},
                            {".text.second", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, second},
                            {".text.helper", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, "what both call"},
                            {".nv.constant3", SHT_PROGBITS, SHF_ALLOC, constants},
                            {".nv.constant0.second", SHT_PROGBITS, SHF_ALLOC, second},
                            {".nv.global", SHT_NOBITS, SHF_ALLOC, std::string(variable_bytes, 'x')},
                            {".note.nv.tkinfo", SHT_NOTE, 0, note},
                            {".symtab", SHT_SYMTAB, 0, symbols}};
    if (other_order) std::swap(parts[1], parts[5]);
    parts.back().link = static_cast<std::uint32_t>(parts.size());
    parts.push_back({".strtab", SHT_STRTAB, 0, texts});
    parts.push_back({".shstrtab", SHT_STRTAB, 0, ""});
    std::vector<std::uint32_t> places;
    for (const Part& part : parts) places.push_back(place_in(names, part.name));
    parts.back().bytes = names;

    std::string body, table;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Elf64_Shdr one{};
      one.sh_name = places[i];
      one.sh_type = parts[i].type;
      one.sh_flags = parts[i].flags;
      one.sh_offset = sizeof(Elf64_Ehdr) + body.size();
      one.sh_size = parts[i].bytes.size();
      one.sh_link = parts[i].link;
      table += bytes_of(one);
      if (one.sh_type != SHT_NOBITS) body += parts[i].bytes;
    }
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_flags = machine_flags;
    header.e_shoff = sizeof header + body.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<std::uint16_t>(parts.size());
    header.e_shstrndx = static_cast<std::uint16_t>(parts.size() - 1);
    return bytes_of(header) + body + table;
  }
};

std::string of_first(const Cubin& cubin) { return kernel_code_digest(cubin.bytes(), "first"); }

TEST(KernelCode, TellsTheKernelsOfACubinAndNotItsFunctions) {
  EXPECT_EQ(kernels_of_cubin(Cubin{}.bytes()), (std::set<std::string>{"first", "second"}));
}

TEST(KernelCode, IsAnotherWhereWhatTheKernelNeedsIs) {
  const std::string ours = of_first({});
  EXPECT_EQ(ours.size(), 64U);
  EXPECT_NE(of_first({.first = "first's instruCtions"}), ours);
  EXPECT_NE(of_first({.constants = "Shared constants"}), ours);
  EXPECT_NE(of_first({.variable = "other"}), ours);
  EXPECT_NE(of_first({.variable_bytes = 65}), ours);
  EXPECT_NE(of_first({.variable_at = 8}), ours) << "another of two tables";
  EXPECT_NE(of_first({.machine_flags = 0x50}), ours);
  EXPECT_NE(kernel_code_digest(Cubin{}.bytes(), "second"), ours);
}

TEST(KernelCode, IsTheSameWhateverElseTheFileHolds) {
  const std::string ours = of_first({});
  EXPECT_EQ(of_first({.second = "another kernel, and longer"}), ours);
  EXPECT_EQ(of_first({.note = "compiled on Tuesday"}), ours);
  EXPECT_EQ(of_first({.other_order = true}), ours);
  EXPECT_EQ(of_first({.machine_flags = 0x900005a}), ours);
}

// Names of what a file keeps to itself hold digits made of the file's path (seen of nvcc 13).
TEST(KernelCode, IsTheSameWhereverTheSourceLay) {
  const auto named = [](const std::string& place, const std::string& function) {
    const std::string own = place + "_4_k_cu__Z2goPf";
    const std::string of_file = "_GLOBAL__N__" + own, of_module = "_INTERNAL_" + own;
    return std::pair{
        "_ZN" + std::to_string(of_file.size()) + of_file + function,
        "_ZN" + std::to_string(of_module.size()) + of_module + std::to_string(of_file.size()) + of_file + "1gE"};
  };
  const auto digests = [&](const std::string& place, const std::string& function) {
    const auto [kernel, variable] = named(place, function);
    Cubin cubin{.variable = variable, .kernel = kernel};
    LoadedCode code;
    code.add(cubin.bytes());
    return std::pair{kernel_code_digest(cubin.bytes(), kernel), code.of({{.symbol = kernel}}).digest};
  };
  const auto here = digests("c419cd55", "5twicePf");
  EXPECT_EQ(here.first.size(), 64U);
  EXPECT_EQ(digests("428dbffb", "5twicePf"), here);
  EXPECT_NE(digests("c419cd55", "5thricePf").first, here.first);
  EXPECT_NE(digests("c419cd55", "5thricePf").second, here.second);
  // What only looks like one keeps all of its name.
  const auto plain = [](const std::string& kernel) {
    return kernel_code_digest(Cubin{.kernel = kernel}.bytes(), kernel);
  };
  EXPECT_NE(plain("_ZN21_GLOBAL__N__shortname1fv"), plain("_ZN21_GLOBAL__N__othername1fv"));
  EXPECT_NE(plain("_ZN99_GLOBAL__N__c419cd55_4_k_cu__Z2goPf"), plain("_ZN99_GLOBAL__N__428dbffb_4_k_cu__Z2goPf"));
}

TEST(KernelCode, OfWhatIsNoCubinOrLacksTheKernelIsNone) {
  const std::string bytes = Cubin{}.bytes();
  EXPECT_EQ(kernel_code_digest(bytes, "third"), "");
  EXPECT_EQ(kernel_code_digest(bytes, "helper"), "");
  EXPECT_EQ(kernel_code_digest("no cubin", "first"), "");
  for (std::size_t length = 0; length < bytes.size(); length += 7) {
    const std::string cut = bytes.substr(0, length);
    EXPECT_EQ(kernel_code_digest(cut, "first"), "") << length;
  }
  // Numbers that point out of the file.
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string broken = bytes;
    broken[at] = '\xff';
    static_cast<void>(kernel_code_digest(broken, "first"));
  }
}

LoadedCode loaded(std::initializer_list<Cubin> cubins) {
  LoadedCode code;
  for (const Cubin& one : cubins) code.add(one.bytes());
  return code;
}

TEST(KernelCode, OfACallIsOverItsLaunchesInOrder) {
  const LoadedCode code = loaded({{}});
  const RanKernel first{.symbol = "first", .order = 1}, second{.symbol = "second", .order = 2};
  const CodeOfCall call = code.of({first, second, {.symbol = "first", .order = 3}});
  EXPECT_EQ(call.why, "");
  EXPECT_EQ(call.digest.size(), 64U);
  ASSERT_EQ(call.kernels.size(), 2U);
  EXPECT_EQ(call.kernels[0].name, "first");
  EXPECT_EQ(call.kernels[0].launches, 2);
  EXPECT_EQ(call.kernels[0].code, of_first({}));
  EXPECT_EQ(code.of({second, {.symbol = "first", .order = 3}, first}).digest, call.digest);  // as buffers bring them
  EXPECT_NE(code.of({first, second}).digest, call.digest);
  EXPECT_NE(code.of({first, {.symbol = "second", .order = 0}}).digest, code.of({first, second}).digest);
  EXPECT_NE(loaded({{.second = "changed"}}).of({first, second}).digest, code.of({first, second}).digest);
  EXPECT_EQ(loaded({{.second = "changed"}}).of({first}).digest, code.of({first}).digest);
}

TEST(KernelCode, OfALaunchHoldsItsShape) {
  const LoadedCode code = loaded({{}});
  const std::string ours = code.of({{.symbol = "first"}}).digest;
  EXPECT_NE(code.of({{.symbol = "first", .grid = {2, 1, 1}}}).digest, ours);
  EXPECT_NE(code.of({{.symbol = "first", .block = {1, 2, 1}}}).digest, ours);
  EXPECT_NE(code.of({{.symbol = "first", .cluster = {2, 1, 1}}}).digest, ours);
  EXPECT_NE(code.of({{.symbol = "first", .shared_bytes = 4}}).digest, ours);
  EXPECT_NE(code.of({{.symbol = "first", .registers = 4}}).digest, ours);
  EXPECT_EQ(code.of({{.symbol = "first", .order = 9}}).digest, ours);
}

// A JIT may load two kernels of one name.
TEST(KernelCode, OfANameThatTwoModulesHaveIsOfBoth) {
  const RanKernel first{.symbol = "first"};
  const Cubin plain, other{.first = "specialised"};
  const std::string both = loaded({plain, other}).of({first}).digest;
  EXPECT_NE(both, loaded({plain}).of({first}).digest);
  EXPECT_EQ(both, loaded({other, plain}).of({first}).digest);
  EXPECT_EQ(loaded({plain, plain}).of({first}).digest, loaded({plain}).of({first}).digest);
}

TEST(KernelCode, WithoutAllOfItThereIsNoDigestButAReason) {
  const CodeOfCall call = loaded({{}}).of({{.symbol = "first"}, {.symbol = "_Z5stillPf", .order = 1}});
  EXPECT_EQ(call.digest, "");
  EXPECT_NE(call.why.find("still"), std::string::npos) << call.why;
  EXPECT_EQ(call.kernels.size(), 2U);
  EXPECT_EQ(loaded({{}}).of({}).why, "no kernel ran");
}

}  // namespace
}  // namespace syslab::trace
