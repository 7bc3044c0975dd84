// The laws of attention, each bound to one rung: of our ladder, of a library, or of a process.
//
//   for (const check::Law& law : attention::laws(attention::find_rung("flash_tiled"))) {
//     const check::LawResult result = law.search({.contract = check::Contract::full, .seed = 7});
//   }
//
// A law asks only what the rung supports. Where that leaves nothing, or where the contract does not promise the
// property, the outcome is `not_run` and the message says why.
#pragma once

#include <optional>
#include <vector>

#include "check/law.hpp"
#include "contract/law.hpp"
#include "ops/attention/attention.hpp"
#include "ops/attention/domain.hpp"

namespace syslab::attention {

// Laws of both passes ask the forward pass, and the backward pass where the rung has one.
std::vector<check::Law> laws(const Rung& rung);
std::vector<LawInfo> law_list();  // ids and statements, in the same order
// Those that a kernel of this pass can break, asked of this pass: of a rung that has no backward pass, none
// of the backward laws holds by its forward pass alone.
std::vector<check::Law> laws_of(const Rung& rung, Pass pass);
// Of somebody's own, which promises `domain`; of ours where there is none.
std::vector<check::Law> laws_of(const Rung& rung, Pass pass, const std::optional<Domain>& domain);
std::vector<LawInfo> law_list(Pass pass);

}  // namespace syslab::attention
