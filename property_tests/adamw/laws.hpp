// The laws of AdamW, each bound to one rung.
#pragma once

#include <string>
#include <vector>

#include "check/law.hpp"
#include "contract/law.hpp"
#include "ops/adamw/adamw.hpp"

namespace syslab::adamw {

std::vector<check::Law> laws(const Rung& rung);
std::vector<LawInfo> law_list();            // ids and statements, in the same order
std::string never_drawn(const Rung& rung);  // what no law draws, at any depth (property_tests/left_out.hpp)

}  // namespace syslab::adamw
