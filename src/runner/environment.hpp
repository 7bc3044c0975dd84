// What machine this is: facts for provenance, and the key that says which results may be compared.
#pragma once

#include <string>

#include "core/text/json.hpp"

namespace syslab::runner {

// Host, CPU, memory, kernel, limits, container hints, libraries, GPUs through NVML when its library is present (no CUDA
// context is opened), and an allow-list of environment variables by prefix, without anything that looks like a secret
// or only says where something lies (runner/variables.hpp).
Json environment_facts();

// Of such facts what tells of the machine's kind and not of whose it is: no host name, no serial of a GPU, and of the
// variables those that steer what is computed. For what leaves this machine: a claim, a selftest.
Json facts_for_strangers(Json facts);

// SHA-256 over what changes speed and does not move between boots: GPU name, memory, power limit, driver major; CPU
// model, cores; not host name, uuid, temperatures, clocks or free memory.
std::string comparability_key(const Json& facts);

// The same for what runs on a single GPU: how many cores and how many such GPUs the machine has changes nothing.
std::string comparability_key_on_one_gpu(const Json& facts);

}  // namespace syslab::runner
