// A lab of its own to be broken: this program as a child, with a database, a folder for temporary files and a state
// folder that nobody else uses. What it leaves is found by them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/files/temporary_folder.hpp"
#include "core/process/process.hpp"
#include "core/text/json.hpp"

namespace syslab::selftest {

using Clock = std::chrono::steady_clock;

// Whole lines of a pipe. One that its writer did not finish is none.
class Lines {
 public:
  explicit Lines(int fd) : fd_(fd) {}
  // Nothing at the deadline, and nothing more where the pipe has ended.
  std::optional<std::string> next(Clock::time_point deadline);
  bool ended() const { return ended_; }

 private:
  int fd_;
  bool ended_ = false;
  std::string buffer_;
};

// A verb under way, with its standard output.
struct Running {
  Process process;
  FileDescriptor output;
};

struct Finished {
  ExitStatus exit;
  std::vector<std::string> lines;
};

class ScratchLab {
 public:
  // Unsupported where this process cannot start others, or cannot see them.
  ScratchLab();

  const std::string& database() const { return database_; }
  void start_afresh();  // another database from now on

  // With `--db`, and an environment that has nothing of ours but where programs and libraries are.
  // `variables`: NAME=value of more.
  Running start(std::vector<std::string> arguments, const std::vector<std::string>& variables = {}) const;
  Finished run(std::vector<std::string> arguments, const std::vector<std::string>& variables = {}) const;

  // Living processes of this lab.
  std::vector<pid_t> processes() const;
  // How many are left when they were given `patience` to end; they are killed then.
  int processes_left(std::chrono::milliseconds patience) const;
  // How many files and folders are where none should be; they are removed.
  int files_left() const;

  void plant_file() const;        // what files_left() must find
  Process plant_process() const;  // what processes_left() must find; ends with the handle at the latest

 private:
  std::vector<std::string> command(const std::vector<std::string>& arguments,
                                   const std::vector<std::string>& variables) const;

  TemporaryFolder folder_;
  std::string program_, temporary_, database_;
  int databases_ = 0;
};

// Orphans of a killed lab become ours (this worker is a subreaper) and stay zombies until somebody asks for them. Once
// every process that was started has been waited for.
void reap_orphans();

// Workers below a running lab, oldest first: the rank of each is its place. None while a program is being started,
// which may be that of any rank.
std::vector<pid_t> workers_of(pid_t lab);

// The attempt that a line of `--json` tells of; nothing if it is another line.
std::optional<Json> attempt_of(const std::string& line);

}  // namespace syslab::selftest
