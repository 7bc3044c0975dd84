// Converts command-line options to the plan's types.
#pragma once

#include <optional>
#include <string>

#include "core/text/units.hpp"
#include "plan/plan.hpp"
#include "plan/sides.hpp"
#include "session/console.hpp"
#include "session/context.hpp"
#include "session/options.hpp"

namespace syslab::cli {

// With the machine that this program runs on: where a GPU may be meant, it is asked for (session/this_machine.hpp).
// `sides`: of a comparison; their axes are axes of a --command, too.
plan::Selection to_selection(const Context& context, const SelectionOptions& options, const plan::Sides& sides = {});

// Laws under their contracts: `contract` when given, else `full` for ours and `handout` for --mine. Indices begin at 0.
plan::Plan law_plan(const plan::Selection& selection, std::optional<Contract> contract);

// Those that `run` searches before it measures `measured`.
plan::Plan laws_before(const plan::Selection& selection, std::optional<Contract> contract, const plan::Plan& measured);

// Keeps only the part of a plan that --shard names. False, with a message, if that part is empty.
bool keep_shard(const Console& console, const SelectionOptions& options, plan::Plan& plan);

// `first`, then `second`, indexed anew.
plan::Plan joined(plan::Plan first, plan::Plan second);

Nanoseconds duration_option(const std::string& name, const std::string& text);  // Error(usage) when it is none
// "2%" → 0.02; Error(usage) unless it is a percentage above 0 % and below `below`.
double percent_option(const std::string& name, const std::string& text, int below = 1000);
std::uint64_t bytes_option(const std::string& name, const std::string& text);  // 0 when empty

// Error(usage) where it is plain that a file cannot be served: the interpreter of a Python file is not there or lacks
// NumPy, torch or Triton that it imports, the file does not parse or has no such class, a library is none. Better once
// here than in every case.
void check_mine(const std::vector<Submitted>& mine);

// Says so where a case has more ranks on the CPU than there are processors: then their times are of taking turns.
void note_crowded_ranks(const Console& console, const plan::Plan& plan);

std::string path_of(const Submitted& mine);  // "/home/me/kernel.so", "/home/me/flash.py:Flash"

// "flash_forward flash_tiled causal=true seq=128": how every verb calls a case. Axes at their only declared value are
// left out; of an experiment that `registry` has not, none.
std::string case_label(const registry::Registry& registry, const std::string& experiment,
                       const std::string& implementation, const Params& params, std::int64_t world_size = 1);

// The case's part of that title alone, of a stored function: "n=16" of "case=n=16 n=16 problem=ref@3cecfe64". Of other
// experiments `case_text`, as it is.
std::string case_words(const std::string& experiment, const std::string& params_json, const std::string& case_text);

// The title of a planned case, and "flash_forward naive attention.causal_prefix (full)" of a law.
std::string label_of(const plan::PlannedCase& planned);

// "attention.causal_prefix (full)"; empty of a case that is measured.
std::string law_label(const plan::PlannedCase& planned);

}  // namespace syslab::cli
