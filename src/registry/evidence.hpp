// What answers a deliverable of a hand-out, as data beside the experiment that measures it.
//
//   .evidence({.parts = {"b"}, .grid = {{"model", {text("small"), text("xl26")}}}})
//   .evidence({.need = Need::nice, .preset = "paper"})
//
// `syslab run --handout` measures it all: least first, for all deliverables of the hand-out, then what is asked, then
// what is nice (src/evidence/).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "contract/axis.hpp"

namespace syslab::registry {

// A named choice of axis values (and of implementations, under "impl", of devices, under "device", and of numbers of
// ranks, under "world_size"): `smoke`, `laptop`, `paper`.
using Preset = std::map<std::string, Values>;

enum class Need {
  least,  // without it there is no answer
  asked,  // what the hand-out's text asks for
  nice,   // beyond that
};

struct Evidence {
  Need need = Need::least;
  std::string handout;             // of this one alone; empty: of each that poses the problem
  std::string problem;             // another experiment's, that this one helps to answer; empty: the experiment's own
  std::vector<std::string> parts;  // "a", "b"; empty: all of the problem
  std::string preset;              // of the experiment: the values that `grid` replaces some of; empty: the declared
  Preset grid;
  bool coarse = false;    // of each axis' values the ends and the middle
  bool laws = false;      // its implementations' laws are searched; nothing is measured
  bool in_small = false;  // on a machine without a GPU, at its sizes: shows the way, and is no answer
};

}  // namespace syslab::registry
