// Which kernels a call runs, and their machine code as it was loaded, told by CUPTI. It must listen before the process'
// first work on a GPU, for a module is told once, when it is loaded; whoever is timed must not be listened to, so that
// a process of its own asks (worker/cases/kernel_code.hpp).
//
//   const auto watch = CodeWatch::start(why);  // null: why
//   call();                                    // loads what it needs
//   watch->begin();
//   call();
//   const CodeOfCall code = watch->end();      // waits for nothing: the device must have been
#pragma once

#include <memory>
#include <string>

#include "trace/kernel_code.hpp"

namespace syslab::trace {

class CodeWatch {
 public:
  virtual ~CodeWatch() = default;

  // One at a time, and none beside a CuptiSession.
  static std::unique_ptr<CodeWatch> start(std::string& why);

  virtual void begin() = 0;
  virtual CodeOfCall end() = 0;
};

}  // namespace syslab::trace
