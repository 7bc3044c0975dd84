#include "comm/shm/rendezvous.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

#include "comm/rendezvous/private_directory.hpp"
#include "core/error.hpp"
#include "core/rank_error.hpp"
#include "core/text/units.hpp"

namespace syslab::comm {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

std::string read_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// A file with one line. It appears complete or not at all, and its owner's destructor removes it.
class AddressFile {
 public:
  AddressFile(fs::path path, const std::string& line) : path_(std::move(path)) {
    const fs::path unfinished = fmt::format("{}.{}", path_.string(), ::getpid());
    std::ofstream stream(unfinished);
    stream << line << '\n';
    stream.close();
    std::error_code error;
    if (stream) fs::rename(unfinished, path_, error);
    if (!stream || error) {
      fs::remove(unfinished, error);
      throw Error(ErrorKind::comm,
                  fmt::format("cannot leave the address of the shared memory in {}: the directory must be there, and "
                              "writable for all ranks",
                              path_.string()),
                  "rename");
    }
  }
  AddressFile(const AddressFile&) = delete;
  AddressFile& operator=(const AddressFile&) = delete;
  ~AddressFile() {
    std::error_code error;
    fs::remove(path_, error);
  }

 private:
  fs::path path_;
};

std::string await_address(const fs::path& path, int rank, const ShmOptions& options) {
  const auto deadline = Clock::now() + options.limit;
  std::string line;
  for (auto pause = 200us;; pause = std::min(2 * pause, std::chrono::microseconds(5000))) {
    line = read_line(path);
    if (!line.empty() && ShmSegment::is_alive(line)) return line;
    // A line that is no address, or one of another host, will not change: joining reports the reason.
    if (!line.empty() && !ShmSegment::is_of_this_host(line)) return line;
    if (Clock::now() >= deadline) break;
    std::this_thread::sleep_for(pause);
  }
  throw RankError(Fault::late, fmt::format("rank {} waited {} for rank 0, which left no address in {}{}", rank,
                                           format_duration(options.limit), path.parent_path().string(),
                                           line.empty() ? "" : ": what lies there is of a process that has ended"));
}

}  // namespace

std::unique_ptr<ShmSegment> meet_in_directory(const fs::path& directory, int rank, int size,
                                              const ShmOptions& options) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  if (options.name.empty() || !std::all_of(options.name.begin(), options.name.end(), is_plain)) {
    throw Error(ErrorKind::config,
                fmt::format("'{}' cannot name a group of ranks: letters, digits, '-' and '_' can", options.name));
  }
  if (size > 1) expect_private(directory);
  const fs::path path = directory / ("shm-" + options.name);
  if (rank == 0) {
    std::unique_ptr<ShmSegment> segment = ShmSegment::create(size, options);
    const AddressFile file(path, segment->address());
    segment->wait_for_all();
    return segment;
  }
  const std::string address = await_address(path, rank, options);
  std::unique_ptr<ShmSegment> segment = ShmSegment::join(address, rank, size, options);
  try {
    segment->wait_for_all();
  } catch (...) {
    // Rank 0 removes its file, unless it was killed.
    std::error_code error;
    if (!ShmSegment::is_alive(address) && read_line(path) == address) fs::remove(path, error);
    throw;
  }
  return segment;
}

}  // namespace syslab::comm
