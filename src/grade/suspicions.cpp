#include "grade/suspicions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"
#include "core/files/user_file.hpp"
#include "core/text/text.hpp"
#include "grade/python_names.hpp"
#include "grade/record.hpp"

namespace syslab::grade {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostSuspicions = 100, kMostText = 160;
constexpr std::uint64_t kMostCode = 1U << 20;
constexpr const char* kNotRead = "was not read, because it is larger than 1 MiB or cannot be";

// Of what an import brings in: of a name that begins with `top`, and has `part` in it, if that is not empty.
struct Sign {
  std::string_view top, part, why;
};

constexpr std::array kSigns = std::to_array<Sign>({
    {"torch", "scaled_dot_product_attention", "calls torch's own attention"},
    {"torch", "flex_attention", "calls torch's own attention"},
    {"torch", "MultiheadAttention", "calls torch's own attention"},
    {"flash_attn", "", "calls a library's attention"},
    {"flash_attn_interface", "", "calls a library's attention"},
    {"xformers", "", "calls a library's attention"},
    {"torch", "DistributedDataParallel", "uses torch's own data parallelism"},
    {"torch", "FullyShardedDataParallel", "uses torch's own full sharding"},
    {"torch", "fully_shard", "uses torch's own full sharding"},
    {"torch", "ZeroRedundancyOptimizer", "uses torch's own sharded optimizer"},
    {"deepspeed", "", "uses a library's training on several devices"},
    {"fairscale", "", "uses a library's training on several devices"},
    {"?", "data_ptr", "looks at where its tensors lie"},
    {"torch", "data_ptr", "looks at where its tensors lie"},
    {"gc", "get_objects", "looks at objects that it was not given"},
    {"gc", "get_referrers", "looks at objects that it was not given"},
    {"sys", "_getframe", "looks at who calls it"},
    {"inspect", "currentframe", "looks at who calls it"},
    {"inspect", "stack", "looks at who calls it"},
    {"ctypes", "", "calls machine code past Python"},
    {"cffi", "", "calls machine code past Python"},
    {"socket", "", "opens connections of its own"},
    {"multiprocessing", "shared_memory", "uses memory that other hand-ins see"},
});
constexpr std::string_view kOfTheLab = "names a part of the laboratory",
                           kSharedMemory = "uses memory that other hand-ins see";

struct KernelSign {
  std::string_view name, why;
};

// Of whole attention: what a hand-out's own kernel is called, flash_fwd_kernel, is not among them.
constexpr std::array kAttentionOfALibrary = std::to_array<KernelSign>({
    {"pytorch_flash::", "ran torch's own attention"},
    {"fmha_cutlass", "ran torch's own attention"},
    {"PyTorchMemEffAttention", "ran torch's own attention"},
    {"flex_attention", "ran torch's own attention"},
    {"void flash::", "ran a library's attention"},
    {"cudnn_generated", "ran cuDNN's attention"},
    {"cudnn_infer", "ran cuDNN's attention"},
});
// What torch, cuBLAS, CUTLASS and torch.compile call their kernels.
constexpr std::array<std::string_view, 14> kOfALibrary{
    "at::native", "at_cuda_detail", "cublas",     "cutlass",     "gemm",        "gemv",        "splitKreduce",
    "cudnn",      "elementwise",    "triton_poi", "triton_red_", "triton_per_", "triton_tem_", "nvjet",
};

bool is_of_a_library(std::string_view kernel) {
  return std::ranges::any_of(kOfALibrary,
                             [&](std::string_view one) { return kernel.find(one) != std::string_view::npos; });
}

// The packages of which a text imports everything: what "*.relu" may be from.
std::set<std::string> starred(const std::vector<PythonName>& names) {
  std::set<std::string> tops;
  for (const PythonName& one : names) {
    if (one.name.ends_with(".*")) tops.insert(one.name.substr(0, one.name.find('.')));
  }
  return tops;
}

// Why a name of the text is one to look at; empty: it is not.
std::string_view why_to_look_at(const std::string& name, const std::set<std::string>& starred) {
  if (name.starts_with("\"")) {  // a text
    if (name.starts_with("\"syslab_")) return kOfTheLab;
    return name.starts_with("\"/dev/shm") ? kSharedMemory : std::string_view();
  }
  if (name.starts_with("syslab_")) return kOfTheLab;
  const std::vector<std::string> parts = split(name, '.');
  const auto may_be_of = [&](std::string_view top) {
    if (parts.front() == "*") return top == "?" || starred.contains(std::string(top));
    return parts.front() == top;
  };
  const auto sign = std::ranges::find_if(kSigns, [&](const Sign& one) {
    return may_be_of(one.top) && (one.part.empty() || std::ranges::find(parts, one.part) != parts.end());
  });
  return sign == kSigns.end() ? std::string_view() : sign->why;
}

bool is_test(const fs::path& file) {
  const std::string name = file.filename().string();
  return (name.starts_with("test_") || name == "conftest.py") &&
         std::ranges::find(file, fs::path("tests")) != file.end();
}

// Of environments and of tools, which nothing imports.
bool is_passed_over(const std::string& folder) {
  return folder == ".git" || folder == ".venv" || folder == ".tox" || folder == ".nox";
}

// Python files below `folder`.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code gone;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, gone);
  for (const fs::recursive_directory_iterator end; !gone && entry != end; entry.increment(gone)) {
    std::error_code ignored;
    if (is_passed_over(entry->path().filename().string())) entry.disable_recursion_pending();
    const fs::path relative = entry->path().lexically_relative(folder);
    if (entry->is_symlink(ignored) || !entry->is_regular_file(ignored) || relative.extension() != ".py") continue;
    files.push_back(relative);
  }
  std::ranges::sort(files);
  return files;
}

// From `at` on, as far as a name of Python may go.
std::string word_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) ++end;
  return std::string(text.substr(at, end - at));
}

// Names in a text that may be those of tests.
void add_tests_named(std::string_view text, std::set<std::string>& names) {
  for (const std::string_view begin : {"test_", "conftest"}) {
    for (std::size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at + 1)) {
      names.insert(word_at(text, at));
    }
  }
}

}  // namespace

std::vector<Suspicion> suspicions_of(std::string_view code, const std::string& file) {
  std::vector<Suspicion> found;
  const std::vector<std::string> lines = split(code, '\n');
  const std::vector<PythonName> names = names_in(code);
  const std::set<std::string> tops = starred(names);
  for (const PythonName& one : names) {
    const std::string_view why = why_to_look_at(one.name, tops);
    // The first place leads a reader to the others.
    if (why.empty() || std::ranges::find(found, why, &Suspicion::why) != found.end()) continue;
    const std::string line = one.line <= static_cast<int>(lines.size()) ? lines[std::size_t(one.line) - 1] : "";
    found.push_back({file, one.line, std::string(why), trim(line).substr(0, kMostText)});
  }
  return found;
}

std::vector<Suspicion> suspicions_in(const fs::path& folder) {
  std::vector<fs::path> files = files_in(folder);
  std::vector<Suspicion> all;
  std::set<std::string> named;  // tests that what was looked at may import
  const auto look_at = [&](const fs::path& file) {
    if (is_test(file) && !named.contains(word_at(file.stem().string(), 0))) return false;
    const std::string name = file.generic_string();
    try {
      const std::string text = read_user_file(folder / file, kMostCode);
      std::ranges::move(suspicions_of(text, name), std::back_inserter(all));
      add_tests_named(text, named);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;
      all.push_back({name, 0, kNotRead, ""});
    }
    return true;
  };
  while (std::erase_if(files, look_at) > 0) {
  }
  std::ranges::stable_sort(all, {}, &Suspicion::file);
  if (all.size() > kMostSuspicions) all.resize(kMostSuspicions);
  return all;
}

std::vector<Suspicion> suspicions_of_kernels(const Json& kernels, const std::string& timing) {
  std::vector<Suspicion> found;
  if (!kernels.is_array() || kernels.empty()) return found;
  const auto text_of = [](const Json& one) {
    return fmt::format("{} times {}", one.value("launches", 0), text_field(one, "name")).substr(0, kMostText);
  };
  for (const Json& one : kernels) {
    const std::string name = text_field(one, "name");
    const auto sign = std::ranges::find_if(
        kAttentionOfALibrary, [&](const KernelSign& each) { return name.find(each.name) != std::string::npos; });
    if (sign != kAttentionOfALibrary.end()) found.push_back({timing, 0, std::string(sign->why), text_of(one)});
  }
  const auto of_a_library = [](const Json& one) { return is_of_a_library(text_field(one, "name")); };
  if (found.empty() && std::ranges::all_of(kernels, of_a_library)) {
    found.push_back({timing, 0, "ran kernels of libraries alone", text_of(kernels.front())});
  }
  return found;
}

}  // namespace syslab::grade
