// A submission's copy in a folder of its own, and the processes of this program that look at it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/process/process.hpp"

namespace syslab::grade {

inline constexpr std::uintmax_t kMostFiles = 10'000;  // of a folder, as of a zip

// What people and tools leave beside the code. An environment is never taken: its interpreter would run unwatched.
bool is_left_out(const std::filesystem::path& name);

// The user ended the grading: no fault of a submission, so nothing is kept of the one at work.
struct Interrupted {};

class OwnFolder {
 public:
  // Made in `parent`; `hidden`: folders that the code cannot read, as core/text/path_list.hpp writes them.
  OwnFolder(const std::filesystem::path& parent, const std::string& id, std::string hidden);
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  ~OwnFolder();

  // A copy of a folder or a zip without environments and what tools leave. Error(usage) for links and for more than a
  // submission may have. Of a folder, symbolic links to nothing are left out; the paths of these.
  std::vector<std::string> take(const std::filesystem::path& submission) const;

  std::filesystem::path code() const { return path_ / "code"; }
  std::filesystem::path database() const { return path_ / "lab.db"; }

  struct Ended {
    std::optional<ExitStatus> status;  // nothing: it was stopped at `limit`
    std::string output;
  };
  // This program with these words, one thread, and this text (at most 4 KiB) to read; all that it started has ended.
  // Interrupted as soon as `interrupted` says so; it may be empty.
  Ended run(std::vector<std::string> words, const std::string& input, std::chrono::milliseconds limit,
            const std::function<bool()>& interrupted = {}) const;

 private:
  std::filesystem::path path_;
  std::string hidden_;
};

}  // namespace syslab::grade
