// Collectives as ranks called them: rows of numbers, of which src/python/syslab_training.py (note_events) and our own
// strategies (experiments/ddp/own_ranks.cpp) fill in one each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "property_tests/data_parallel/wrong.hpp"

namespace syslab::data_parallel {

// Behind a row with how many there are. Fields: those of Sent in their order, the file's name by three bytes a number.
inline constexpr std::int64_t kSentRows = 1025, kSentFields = 17;

struct Sent {
  // uncounted: in this step something went between two ranks, or to or from one, which nobody counts.
  // whole_numbers: by any collective, of numbers that are no floats.
  enum class Kind { all_reduce, broadcast, all_gather, reduce_scatter, reduce, barrier, uncounted, whole_numbers };
  int step = 0;  // −1: when the container was made
  Kind kind = Kind::all_reduce;
  std::int64_t elements = 0, bytes = 0;
  int ready = 0;  // gradients that were final
  bool in_backward = false, asynchronous = false, waited = false;
  int line = 0;      // of the class's source, that called it; 0: nobody knows
  std::string file;  // its name, of which only letters, digits and a few signs are kept: the class's process says it
};

// Of one rank, from the rows of all. Error(check): it called more than there is room for.
std::vector<Sent> sent_by(std::span<const float> rows, std::int64_t rank);

// Adds " (no wait() was called for …)" about the first that nobody waited for, where there is one.
void add_forgotten_wait(Wrong& wrong, const std::vector<Sent>& sent);

// Throws Unsupported where a step sent what is not counted: a law about messages then cannot tell.
void demand_all_counted(const std::vector<Sent>& sent);

}  // namespace syslab::data_parallel
