// All experiments of this binary. Filled before main by SYSLAB_EXPERIMENT, sealed by main, and then only read.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "registry/experiment.hpp"

namespace syslab::registry {

class Registry {
 public:
  static Registry& global();

  // Error(internal) if the id is taken, or a preset or skip rule names what does not exist, or the registry is sealed.
  void add(Experiment experiment);
  void seal();
  // Gives an experiment, even of a sealed registry, the axes and points that the files of a command say it has.
  void complete(std::string_view id, std::vector<Axis> axes, std::vector<Params> points);

  std::span<const Experiment> experiments() const { return experiments_; }  // sorted by id once sealed
  // By id or alias; Error(usage) with the nearest names if there is none.
  const Experiment& find(std::string_view name) const;
  // Exact ids, globs ("flash_*"), tags ("tag:attention"), comma lists and "all" (everything not tagged `selftest`), in
  // registry order, each once. Error(usage) for a part that selects nothing.
  std::vector<const Experiment*> select(std::span<const std::string> patterns) const;

 private:
  std::vector<Experiment> experiments_;
  bool sealed_ = false;
};

// Registers at static initialisation. The object file must be linked whole (Meson: link_whole).
struct Registration {
  explicit Registration(const Experiment& experiment) { Registry::global().add(experiment); }
};

#define SYSLAB_EXPERIMENT(object) \
  static const ::syslab::registry::Registration registration_of_##object { object }

}  // namespace syslab::registry
