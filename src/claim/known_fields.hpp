// Which fields a claim of this version has. One that nobody reads would be sealed and believed all the same.
//
// docs/claims.md says of each how it is verified, and tests/claim/every_field_test.cpp changes each.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "claim/claim_file.hpp"
#include "core/text/json.hpp"

namespace syslab::claim {

// "/cases/*/blocks/*/order" of each element. Below "/cases/*/params" a case's axes stand, below "/environment" the
// facts of a machine (runner/known_facts.hpp), below "/seal" a digest of each part.
std::span<const std::string_view> known_fields();

// Adds what is in the JSON of a claim that was read, and which no claim of this version has: fields, facts, warnings.
void add_unknown_fields(std::vector<Alteration>& found, const Json& claim);

}  // namespace syslab::claim
