// What shows that a claim's file is not as `claim` wrote it, or that its parts contradict each other.
//
// The file has a seal: a SHA-256 of each of its parts. Whoever edits a part and leaves the seal is found, and the part
// is named. A seal has no secret: whoever writes it anew as well is found only by what follows from other parts, which
// is computed again here, and by the measurements of who verifies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "claim/claim_file.hpp"
#include "core/text/json.hpp"

namespace syslab::claim {

// A SHA-256 by part of a claim's JSON, the seal itself left out.
Json seal_of(const Json& claim);

// Of a claim that was read, and the JSON that it was read from: all that is found, in the file's order.
std::vector<Alteration> alterations_of(const Json& claim, const File& file);

// Values of the JSON that was read which are others in what was made of it, or in no part of it; the first of each
// part. The seal and the version aside. An older claim lacks fields, which is no difference.
void add_unread(std::vector<Alteration>& found, const Json& claim, const Json& made);

std::string_view to_string(Alteration::Kind kind);
// "tolerance: found SHA-256 “00ff…”, expected “4f2c…”, as sealed"
std::string to_string(const Alteration& alteration);

}  // namespace syslab::claim
