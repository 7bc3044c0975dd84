// Somebody's program behind the walls: started, its output taken, its end waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/text/command_text.hpp"
#include "core/text/units.hpp"
#include "judge/walls.hpp"

namespace syslab::worker {

class OwnProgram {
 public:
  // Its words with the values of `params` filled in. So many bytes of addresses for each of its processes, and of its
  // own /dev/shm; 0: as the system has it.
  OwnProgram(const CommandPlace& place, const Params& params, std::uint64_t memory_limit_bytes);

  struct Ended {
    Nanoseconds took{};  // from before its start until it had ended and all was read that it printed
    std::string output;
    int left_running = 0;  // processes that it had left behind, which were killed
  };
  // With a new folder to write into (TMPDIR), in which nothing of an earlier one is left to be printed again. The
  // folder is made before the time begins and removed after it. What it leaves behind is ended after that time, too,
  // and before the next one starts. Error(usage) when it ends otherwise than with exit code 0, prints more than anybody
  // reads, or leaves a process that cannot be ended.
  Ended run();

  const std::vector<std::string>& words() const { return words_; }
  Json walls_facts() const;

 private:
  std::string folder_;
  std::vector<std::string> words_;
  std::uint64_t memory_limit_bytes_ = 0;
  std::optional<judge::Walls> walls_;
};

}  // namespace syslab::worker
