#include "grade/suspicions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text.hpp"
#include "core/user_file.hpp"
#include "grade/record.hpp"

namespace syslab::grade {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostSuspicions = 100, kMostText = 160;
constexpr std::uint64_t kMostCode = 1U << 20;

struct Sign {
  std::string_view name, why;
};

constexpr std::array kSigns = std::to_array<Sign>({
    {"scaled_dot_product_attention", "calls torch's own attention"},
    {"flex_attention", "calls torch's own attention"},
    {"MultiheadAttention", "calls torch's own attention"},
    {"flash_attn", "calls a library's attention"},
    {"xformers", "calls a library's attention"},
    {"DistributedDataParallel", "uses torch's own data parallelism"},
    {"FullyShardedDataParallel", "uses torch's own full sharding"},
    {"fully_shard", "uses torch's own full sharding"},
    {"ZeroRedundancyOptimizer", "uses torch's own sharded optimizer"},
    {"deepspeed", "uses a library's training on several devices"},
    {"data_ptr", "looks at where its tensors lie"},
    {"get_objects", "looks at objects that it was not given"},
    {"_getframe", "looks at who calls it"},
    {"currentframe", "looks at who calls it"},
    {"shm", "uses memory that other hand-ins see"},
    {"shared_memory", "uses memory that other hand-ins see"},
    {"syslab_worker", "names a part of the laboratory"},
    {"syslab_wire", "names a part of the laboratory"},
    {"syslab_ranks", "names a part of the laboratory"},
    {"syslab_training", "names a part of the laboratory"},
});

// Of whole attention: what a hand-out's own kernel is called, flash_fwd_kernel, is not among them.
constexpr std::array kAttentionOfALibrary = std::to_array<Sign>({
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

bool is_of_name(char letter) {
  return letter == '_' || (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
         (letter >= 'A' && letter <= 'Z');
}

bool has_name(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_of_name(text[at - 1])) && (end == text.size() || !is_of_name(text[end]))) return true;
  }
  return false;
}

bool is_of_handout(const fs::path& file) {
  return file.filename() != "adapters.py" && std::ranges::find(file, fs::path("tests")) != file.end();
}

// Python files below `folder`, but for environments and what else is hidden; what cannot be read is left out.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code gone;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, gone);
  for (const fs::recursive_directory_iterator end; !gone && entry != end; entry.increment(gone)) {
    std::error_code ignored;
    if (entry->path().filename().string().starts_with(".")) entry.disable_recursion_pending();
    const fs::path relative = entry->path().lexically_relative(folder);
    if (entry->is_symlink(ignored) || !entry->is_regular_file(ignored) || relative.extension() != ".py") continue;
    if (!is_of_handout(relative)) files.push_back(relative);
  }
  return files;
}

}  // namespace

std::vector<Suspicion> suspicions_of(std::string_view code, const std::string& file) {
  std::vector<Suspicion> found;
  int number = 0;
  for (const std::string& line : split(code, '\n')) {
    ++number;
    const std::string_view computed = std::string_view(line).substr(0, line.find('#'));
    const auto sign = std::ranges::find_if(kSigns, [&](const Sign& one) { return has_name(computed, one.name); });
    if (sign == kSigns.end()) continue;
    found.push_back({file, number, std::string(sign->why), trim(computed).substr(0, kMostText)});
  }
  return found;
}

std::vector<Suspicion> suspicions_in(const fs::path& folder) {
  std::vector<fs::path> files = files_in(folder);
  std::ranges::sort(files);
  std::vector<Suspicion> all;
  for (const fs::path& file : files) {
    try {
      for (Suspicion& one : suspicions_of(read_user_file(folder / file, kMostCode), file.generic_string())) {
        if (all.size() == kMostSuspicions) return all;
        all.push_back(std::move(one));
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;
    }
  }
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
    const auto sign = std::ranges::find_if(kAttentionOfALibrary,
                                           [&](const Sign& each) { return name.find(each.name) != std::string::npos; });
    if (sign != kAttentionOfALibrary.end()) found.push_back({timing, 0, std::string(sign->why), text_of(one)});
  }
  const auto of_a_library = [](const Json& one) { return is_of_a_library(text_field(one, "name")); };
  if (found.empty() && std::ranges::all_of(kernels, of_a_library)) {
    found.push_back({timing, 0, "ran kernels of libraries alone", text_of(kernels.front())});
  }
  return found;
}

}  // namespace syslab::grade
