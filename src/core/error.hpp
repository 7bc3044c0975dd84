// The one exception type of syslab. Every failure that a user can meet is an Error with a kind and a message: what was
// asked, what was found, what to do.
//
//   throw Error(ErrorKind::usage, "unknown experiment 'flash_foward'; did you mean 'flash_forward'?");
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace syslab {

// What went wrong, as finely as callers react to it: the caller fixes `usage` and `config`, `oom` becomes a table cell,
// `device`, `comm` and `check` end an attempt, `store` and `internal` end the run.
enum class ErrorKind { usage, config, oom, device, comm, check, store, internal };

std::string_view to_string(ErrorKind kind);

// `call` names the library or system call that failed ("mmap", "cublasSgemm"), empty if none did.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, std::string call = {});

  ErrorKind kind() const noexcept { return kind_; }
  const std::string& call() const noexcept { return call_; }

 private:
  ErrorKind kind_;
  std::string call_;
};

// Not a failure: an implementation reports that it cannot do what was asked (a dtype, a mask, grouped heads). A case
// ends as `unsupported` with this reason; a law passes over the input.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws Error with the text of `errno_value` appended. `action` reads "open 'x.db'".
[[noreturn]] void throw_errno(ErrorKind kind, std::string_view action, int errno_value, std::string call);

}  // namespace syslab
