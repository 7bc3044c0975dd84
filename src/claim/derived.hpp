// What follows from other parts of a claim, so that nobody has to believe it.
#pragma once

#include <string>
#include <vector>

#include "claim/claim_file.hpp"

namespace syslab::claim {

// What a side is called, of its words in the sentence: "strategy=bucketed,bucket_mb=25" → "strategy=bucketed
// bucket_mb=25".
std::string label_of(const std::string& side);

// A case by all of its axes: "flash_forward naive causal=true seq=128", the implementation where both sides have it in
// common. The title in the file leaves out axes that have their defaults.
std::string full_title(const File& file, const Case& one);

// "abc+changes" of the JSON of a build, "unknown" where it has no revision.
std::string revision_of(const std::string& build_json);

// Adds labels, titles, revisions and kinds of machines that are not what the other parts make of them, cases that are
// of no experiment of the question, and those that are there twice.
void add_contradictions(std::vector<Alteration>& found, const File& file);

}  // namespace syslab::claim
