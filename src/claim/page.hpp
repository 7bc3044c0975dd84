// A claim as a page for people: what it says, every case with its interval, on which machine, and how to verify it.
#pragma once

#include <string>

#include "claim/claim_file.hpp"
#include "report/table.hpp"

namespace syslab::claim {

// Markdown, LaTeX or one HTML page; Error(usage) for CSV. `file`: what the claim is called in the command that
// verifies.
std::string write_page(const File& claim, const std::string& file, report::Format format);

}  // namespace syslab::claim
