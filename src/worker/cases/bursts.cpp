#include "worker/cases/bursts.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "worker/wire/fields.hpp"

namespace syslab::worker {

std::string PipeBurstLine::next_word(const char* what) {
  const FrameReader::Result result = in_.read(std::nullopt);
  if (result.state != FrameReader::State::frame) {
    throw Error(ErrorKind::comm, fmt::format("the host went away while the case waited for {}", what));
  }
  return Fields(json_or_discarded(result.text), "a message of the host").text("type");
}

void PipeBurstLine::started() {
  write_frame(out_, {{"type", "started"}});
  if (const std::string type = next_word("its turn"); type != "go") {
    throw Error(ErrorKind::comm, fmt::format("a case that has started takes 'go', found '{}'", type));
  }
}

void PipeBurstLine::say(const Ready& ready) {
  ready_ = true;
  write_frame(out_, to_json(ready));
}

void PipeBurstLine::say(const Burst& burst) { write_frame(out_, to_json(burst)); }

bool PipeBurstLine::ordered() {
  const std::string type = next_word("bursts");
  if (type == "burst") return true;
  if (type == "finish") return false;
  throw Error(ErrorKind::comm, fmt::format("a case that is ready takes 'burst' and 'finish', found '{}'", type));
}

std::vector<double> serve_bursts(BurstLine& line, const Ready& ready, const std::function<double()>& take) {
  std::vector<double> seconds;
  line.say(ready);
  while (line.ordered()) {
    seconds.push_back(take());
    line.say(Burst{seconds.back()});
  }
  return seconds;
}

}  // namespace syslab::worker
