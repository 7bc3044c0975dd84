// Walls around a judged process, of what the kernel offers to everybody: Landlock (files, signals, other processes'
// memory) and a seccomp filter (system calls that a kernel under test has no use for). SECURITY.md says what they keep.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/process/process.hpp"

namespace syslab::judge {

// native: a library; no network, no process of its own. python: compilers and other programs may be started; with
// `network`, as ranks need it, sockets too: where the system lets us, to a loopback of their own.
enum class Profile { native, python };

struct WallsOptions {
  Profile profile = Profile::native;
  bool network = false;
  bool gpu = false;                      // CUDA's driver is used: it makes a socket of its own, which leads nowhere
  bool listens = false;                  // compute-sanitizer is at work in it, which listens on sockets of this machine
  std::uint64_t memory_limit_bytes = 0;  // what a /dev/shm of its own may hold; 0: what the system gives it
  std::string writable;                  // the only folder to write into
  std::vector<std::string> hidden;       // folders that cannot be read, there or made later, nor anything in them
};

class Walls {
 public:
  // Error(internal), here and below, where the kernel has a wall and refuses it. What it does not have is left out
  // (missing_walls()). Error(usage) where what is to be hidden has a second name (judge/other_names.hpp).
  explicit Walls(const WallsOptions& options);
  Walls(const Walls&) = delete;
  Walls& operator=(const Walls&) = delete;
  ~Walls();

  // For one process, until the next call: with a ruleset of its own, since a process that makes its own /dev/shm adds a
  // rule to it, and the next ones would start more slowly each time.
  const Confinement* confinement();
  // The only folder that the next processes may write into.
  void write_to(const std::string& folder) { options_.writable = folder; }

 private:
  struct Filter;

  WallsOptions options_;
  FileDescriptor ruleset_;
  std::unique_ptr<Filter> filter_;
  Confinement confinement_;
};

// What to hide: this user's keys are no business of what is judged, nor are those of another XDG_STATE_HOME than
// today's. Not created, since they can be hidden before they are there; empty where there can be none.
std::vector<std::string> keys_folders();

// Variables of the lab's environment that are no business of what is judged, each with no value: the secret of
// launches, and what else is hidden, which names all who have handed something in.
const std::map<std::string, std::string>& withheld_variables();

// For a process of the profile `native`, from inside, once it runs: from now on it starts neither processes nor
// programs.
void deny_processes();

// What this kernel lacks, in words for people; empty where all walls stand. With `shared_memory` also what keeps the
// /dev/shm of a class its own, with `loopback` also what keeps the network of its ranks to themselves.
std::vector<std::string> missing_walls(bool shared_memory = false, bool loopback = false);

// SYSLAB_WALLS=none in the lab's own environment leaves them out, for code that has to write elsewhere.
bool walls_wanted();
// Whether compute-sanitizer runs this program: into each process below it puts libraries that talk to it through pipes
// in its folder and sockets that they listen on, which they are let.
bool under_compute_sanitizer();

// The calling process is no longer to be read or traced by others of its user, nor leaves a core file.
void hide_this_process();

}  // namespace syslab::judge
