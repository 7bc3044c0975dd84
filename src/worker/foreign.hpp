// An implementation in another process, of any language, as a CallChannel: spawned, greeted, called through shared
// memory, watched.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/call_channel.hpp"
#include "core/declares_domain.hpp"
#include "core/pipe.hpp"
#include "core/process.hpp"
#include "worker/protocol.hpp"
#include "worker/shared_segment.hpp"

namespace syslab::worker {

struct ForeignOptions {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;    // added to ours
  std::uint64_t memory_limit_bytes = 0;              // told to the worker, which limits itself; 0: none
  std::string device = "cpu";                        // where the implementation is to compute: "cpu", "cuda"
  int rank = 0, world_size = 1;                      // of the case that it is called by
  bool own_group = true;                             // core/process.hpp
  std::chrono::milliseconds start_timeout{180'000};  // until its hello: importing a framework from a cold disk is slow
  std::chrono::milliseconds call_timeout{10 * 60'000};  // of one call
};

// The command that serves a Python class: the interpreter (SYSLAB_PYTHON, else python3), syslab_worker.py (from
// SYSLAB_PYTHON_DIR, else the copy inside this binary) and the class to load.
std::vector<std::string> python_worker_command(const MineRequest& mine);

// Outputs begin as the caller's buffers are, so an element that the worker forgot still holds the caller's poison.
// Beyond the contract of CallChannel: throws Unsupported when the implementation says so, Error(check) when it wrote
// outside its outputs or reports more time than the whole call took. Calls must come from the thread that constructed
// it.
class ForeignWorker : public CallChannel, public DeclaresDomain {
 public:
  explicit ForeignWorker(ForeignOptions options);

  Nanoseconds call(std::string_view function, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs,
                   const Params& options) override;

  const Json& declared_domain() const override { return *declared_; }
  const std::string& name() const { return name_; }  // as its hello gives it
  const std::string& language() const { return language_; }
  bool usable() const { return broken_.empty(); }

 private:
  void greet();
  Json exchange(const Json& message, std::chrono::milliseconds timeout, std::string_view doing);
  [[noreturn]] void fail_dead(std::string_view doing);

  ForeignOptions options_;
  SharedSegment segment_;
  Process process_;
  FrameReader reader_;
  TailReader errors_;
  std::string name_, language_;
  std::shared_ptr<const Json> declared_;
  std::string broken_;  // why no further call is possible
};

}  // namespace syslab::worker
