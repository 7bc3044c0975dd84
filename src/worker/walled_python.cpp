#include "worker/walled_python.hpp"

#include <unistd.h>

#include <array>
#include <optional>
#include <utility>

#include "judge/private_folder.hpp"
#include "judge/walls.hpp"

namespace syslab::worker {

PythonAnswer ask_python(std::vector<std::string> argv, std::size_t most_bytes) {
  std::optional<judge::PrivateFolder> folder;
  std::optional<judge::Walls> walls;
  SpawnOptions options;
  options.argv = std::move(argv);
  options.capture_stderr = false;
  if (judge::walls_wanted()) {
    folder.emplace();
    walls.emplace(judge::WallsOptions{
        .profile = judge::Profile::python, .writable = folder->path(), .hidden = judge::keys_folder()});
    judge::hide_this_process();
    options.environment = folder->environment();
    options.confinement = walls->confinement();
  }
  options.environment.insert_or_assign("SYSLAB_LAUNCH_SECRET", "");
  Process process = Process::spawn(options);
  process.close_input();
  PythonAnswer answer;
  std::array<char, 4096> chunk;
  for (ssize_t got = 0; (got = ::read(process.from_child(), chunk.data(), chunk.size())) > 0;) {
    answer.output.append(chunk.data(), static_cast<std::size_t>(got));
    if (answer.output.size() > most_bytes) {
      answer.is_cut = true;
      return answer;
    }
  }
  answer.exit = process.wait();
  return answer;
}

}  // namespace syslab::worker
