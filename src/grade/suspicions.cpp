#include "grade/suspicions.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/text.hpp"
#include "core/user_file.hpp"

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
    {"syslab_ranks", "names a part of the laboratory"},
    {"syslab_training", "names a part of the laboratory"},
});

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

}  // namespace syslab::grade
