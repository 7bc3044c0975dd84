// A small store with what a report must cope with: results, a failure, an attempt that ran out of memory, a skipped
// case, laws that held, were broken and were not reached.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "registry/registry.hpp"
#include "report/report.hpp"
#include "store/store.hpp"

namespace syslab::report {

// A file in a folder of its own that is removed with the object.
class FixtureStore {
 public:
  FixtureStore();
  ~FixtureStore();
  FixtureStore(const FixtureStore&) = delete;
  FixtureStore& operator=(const FixtureStore&) = delete;

  store::Store& store() { return *store_; }
  void add_smoke_run();   // flash_forward, protocol quick, argv with --preset smoke
  void add_kernel_run();  // the same cases, protocol kernel
  void add_law_run();
  // A run of one case, which went well unless it says otherwise.
  struct Attempt {
    std::string experiment;
    Params params;
    std::string implementation;
    std::vector<worker::Record> records;
    std::string protocol = "cs336", machine = "box";  // machines of other names are not comparable
    std::string gpu, author;                          // author: of a hand-in
    int ranks = 1;
    std::string version = "1";
    Status status = Status::ok;
    std::string detail;     // why not ok
    std::string role;       // contract/role.hpp
    std::string law;        // that was searched; empty: it was measured
    bool modified = false;  // the build, by uncommitted changes
  };
  void add(Attempt attempt);
  // flash_benchmarking: `implementation` takes 20 us a call on a GPU of that name (empty: on the CPU).
  void add_benchmark_run(const std::string& gpu, const std::string& implementation, const Params& params);

 private:
  void add_run(const std::string& uid, const std::string& protocol, const std::vector<std::string>& argv,
               double time_factor);
  std::filesystem::path folder_;
  std::optional<store::Store> store_;
};

// A registry that holds one experiment, flash_forward, and one that reports leave out.
registry::Registry fixture_registry();

// The whole write-up with all that the store holds.
inline ReportOptions everything() {
  ReportOptions options;
  options.extent = Extent::appendix;
  return options;
}

}  // namespace syslab::report
