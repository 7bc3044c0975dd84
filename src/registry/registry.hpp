// All experiments of this binary. SYSLAB_EXPERIMENT declares one before main: its id, and the function that describes
// it. Most of what a process once did before main was to describe them all, which a worker of one case does not need;
// so a description is made when it is asked for: all by seal(), one by only().
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "registry/experiment.hpp"

namespace syslab::registry {

struct Registration;

class Registry {
 public:
  static Registry& global();

  // Error(internal) if the id is taken, or a preset or skip rule names what does not exist, or the registry is sealed.
  void add(Experiment experiment);
  // Describes what is declared. Error(internal) as above, and if a description has another id than was declared.
  void seal();
  // Exactly this id, of a registry that need not be sealed: what a worker asks for, which reads no other experiment.
  // What it returns stays until another experiment is asked for.
  const Experiment& only(std::string_view id);
  // A copy in which an experiment has the axes and points that the files of a command say it has.
  std::shared_ptr<const Registry> with(std::string_view id, std::vector<Axis> axes, std::vector<Params> points) const;

  std::span<const Experiment> experiments() const { return experiments_; }  // sorted by id once sealed
  // By id or alias; Error(usage) with the nearest names if there is none.
  const Experiment& find(std::string_view name) const;
  // Exact ids, globs ("flash_*"), tags ("tag:attention"), comma lists and "all" (everything not tagged `selftest`), in
  // registry order, each once. Error(usage) for a part that selects nothing.
  std::vector<const Experiment*> select(std::span<const std::string> patterns) const;

 private:
  void describe(const Registration& declared);

  std::vector<Experiment> experiments_;
  bool sealed_ = false;
};

// Declares at static initialisation, without a word of the experiment itself. The object file must be linked whole
// (Meson: link_whole).
struct Registration {
  Registration(const char* id_of_it, Experiment (*description)());

  const char* id;
  Experiment (*describe)();
  const Registration* next;  // of those declared before
};

#define SYSLAB_EXPERIMENT(id, describe) \
  static const ::syslab::registry::Registration registration_of_##id { #id, describe }

}  // namespace syslab::registry
