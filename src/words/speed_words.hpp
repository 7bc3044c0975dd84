// What measurements say of a claim about speed, in words and as JSON.
#pragma once

#include <span>
#include <string>

#include "core/text/json.hpp"
#include "verdict/speed.hpp"

namespace syslab::words {

// Four digits, rounded down: what "at least" may be said of.
std::string claimable_text(double factor);

// "1.190 … 1.210", with so many digits that both compare with the claim's border as printed.
std::string interval_text(const verdict::Speed& speed, double log_border);

// "1.0395, 1 % less than claimed": all digits of the border.
std::string border_text(const verdict::SpeedBorder& border);

// One sentence: what the verdict rests on.
std::string reason(const verdict::SpeedFinding& finding, std::span<const verdict::MeasuredSpeed> measured,
                   const verdict::SpeedBorder& border);

// Whether that sentence has the whole of why this case has no time.
bool is_told_whole(const verdict::SpeedFinding& finding, std::span<const verdict::MeasuredSpeed> measured,
                   const std::string& failed);

// As --json has it; `reason` is the sentence.
Json to_json(const verdict::SpeedFinding& finding, std::span<const verdict::MeasuredSpeed> measured,
             const std::string& reason);

}  // namespace syslab::words
