// Where the numbers of a table come from: machine, protocol, revision, runs, and the command that reproduces them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace syslab::report {

struct Provenance {
  // Each without repetitions, newest run first.
  std::vector<std::string> devices;    // "AMD EPYC (2 cores), no GPU"
  std::vector<std::string> protocols;  // "quick, hot"
  std::vector<std::string> revisions;  // "497474d", "497474d + changes"
  std::vector<std::string> runs;       // whole uids
  std::vector<std::string> commands;   // "syslab run flash_forward --preset smoke"
  // Those of the runs that were made to see that things work, not to measure.
  std::vector<std::string> smoke_runs;
  std::vector<std::string> self_reported;  // those that were merged or imported, and nobody vouches for them here
  std::size_t modified = 0;                // of the runs: built from sources with uncommitted changes
  std::vector<std::string> machines;       // kinds of machine, by their comparability keys
  bool only_quick = false;  // and none of those asked for a smoke run: it is their protocol that measures nothing

  // One line, commands between backticks; empty when nothing was measured.
  std::string footnote() const;
  // A line for below a table: that sources were modified, that several machines measured, that runs are self-reported.
  // Often empty.
  std::string note() const;
  // What must not be overlooked; empty where the numbers are results.
  std::string warning() const;
};

// Of the runs that a column `run_uid` of the result names.
Provenance provenance_of(const store::ResultSet& result, const store::Store& store);

// The words of a command line, quoted where a shell needs it, with the program's bare name first.
std::string command_line(const std::string& argv_json);

}  // namespace syslab::report
