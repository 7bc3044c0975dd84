// Somebody's program behind the walls: started, its output taken, its end waited for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/command_text.hpp"
#include "core/units.hpp"
#include "judge/private_folder.hpp"
#include "judge/walls.hpp"

namespace syslab::worker {

class OwnProgram {
 public:
  // Its words with the values of `params` filled in.
  OwnProgram(const CommandPlace& place, const Params& params);

  struct Ended {
    Nanoseconds took{};  // from before its start until it had ended and all was read that it printed
    std::string output;
  };
  // Error(usage) when it ends otherwise than with exit code 0, or prints more than anybody reads.
  Ended run();

  const std::vector<std::string>& words() const { return words_; }
  Json walls_facts() const;

 private:
  std::string folder_;
  std::vector<std::string> words_;
  std::optional<judge::PrivateFolder> writable_;
  std::optional<judge::Walls> walls_;
};

}  // namespace syslab::worker
