// Modules and trainings as the laws draw them.
#pragma once

#include <functional>
#include <string>

#include "check/law.hpp"
#include "property_tests/data_parallel/training.hpp"

namespace syslab::data_parallel {

// What a law wants of a module beside parameters that are trained, each used once in each step in their order.
struct Wanted {
  bool frozen = false;  // the first, which nothing uses, and every second bias
  bool tied = false;    // a weight with two names, used by both
  bool buffers = false;
  bool mixed = false;        // some parameters are fp64
  bool reordered = false;    // each step in an order of its own
  bool unused = false;       // some steps without some parameters
  bool equal_sizes = false;  // as many parameters of one size as ranks, or a multiple
  bool strided = false;      // matrices whose columns lie next to each other
  bool empty = false;        // a parameter without elements behind the first layer
  bool large = false;        // each weight has hundreds of elements for each rank: padding is small next to them
  bool forms = false;        // beside its layers, parameters of other forms: large, of no dimension, of many
  bool sharded = false;      // for a sharded optimizer
  bool many_steps = false;   // some trainings are longer than most_steps
  bool late = false;         // all of them are late; else some are
  int fewest_layers = 1, most_layers = 4, fewest_steps = 1, most_steps = 3;
};

// What no training of any law goes beyond, as a class reads it.
std::string never_drawn(std::string_view otherwise = {});

// Elements by which a class may round up a rank's part of one tensor: 128 bytes of fp32, to which allocators and
// flat buffers align.
inline constexpr std::int64_t kMostPadding = 32;

// How many ranks: as the hand-outs' tests have it, or 1 to 4.
int draw_ranks(check::Contract contract, int fewest = 1);

Training draw_training(int ranks, const Wanted& wanted, check::Contract contract = check::Contract::full);

// Of a law: its search, with what all inputs leave out where it held, and of a severe fault whether an input of the
// hand-out's tests meets it, too. `beyond`: none of the law's inputs is of their form, whatever is drawn.
check::LawResult search_of_ranks(const char* id, const check::LawRequest& request, bool beyond,
                                 const std::function<void(check::Contract)>& body, const std::string& limits = "");

// Fails with what is wrong, if anything is, and the module in the line behind it.
void demand_none(const Training& asked, const std::optional<Wrong>& wrong);

}  // namespace syslab::data_parallel
