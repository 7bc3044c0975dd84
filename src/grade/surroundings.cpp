#include "grade/surroundings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "core/error.hpp"
#include "core/files/hash.hpp"
#include "submission/script.hpp"
#include "worker/judged/half_products.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::grade {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kListing{60};
constexpr const char* kDriversGpus = "/proc/driver/nvidia/gpus";

constexpr const char* kInstalled = R"py(
import sys
sys.path[:] = [place for place in sys.path if place]  # not the folder that this runs in
import importlib.metadata
print(sys.version)
for line in sorted({f"{one.metadata['Name']} {one.version}" for one in importlib.metadata.distributions()}):
    print(line)
)py";

constexpr const char* kHasTorch = R"py(
import sys
sys.path[:] = [place for place in sys.path if place]
import importlib.util
print("no" if importlib.util.find_spec("torch") is None else "yes")
)py";

std::string gpus() {
  std::vector<std::string> found;
  std::error_code none;
  for (fs::directory_iterator entry(kDriversGpus, none), end; !none && entry != end; entry.increment(none)) {
    found.push_back(entry->path().filename().string());
  }
  std::ranges::sort(found);
  std::string text;
  for (const std::string& one : found) text += one + "\n";
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return text + (visible == nullptr ? "all" : visible);
}

}  // namespace

std::string digest_of_surroundings() {
  const submission::ScriptOutput listed =
      submission::run_script({worker::python_interpreter(), "-c", kInstalled}, kListing, nullptr, {});
  return sha256_hex(listed.output + gpus());
}

void require_torch() {
  const std::string python = worker::python_interpreter();
  const submission::ScriptOutput found = submission::run_script({python, "-c", kHasTorch}, kListing, nullptr, {});
  if (found.output.starts_with("no")) {
    throw Error(ErrorKind::usage, fmt::format("{} has no torch, which the hand-outs' functions need: every submission "
                                              "would earn nothing for that; --python FILE names one that has",
                                              python));
  }
}

std::optional<Lack> lack_in_half(DeviceKind device) {
  return device == DeviceKind::cpu ? worker::lacks_half_products() : std::nullopt;
}

std::string digest_of_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::string all;
  for (const fs::path& file : files) {
    all += file.lexically_relative(folder).string() + '\0' + sha256_hex_of_file(file) + '\n';
  }
  return sha256_hex(all);
}

}  // namespace syslab::grade
