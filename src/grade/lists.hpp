// Tables that an instructor keeps: points of written parts, and who the students are. CSV with a header.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "grade/pages.hpp"

namespace syslab::grade {

// Fields of each line; quotation marks as in RFC 4180. Error(usage) with the line where they do not close.
std::vector<std::vector<std::string>> parse_csv(std::string_view text, const std::string& name);

// student,item,points: what a person gave for written items, "pytorch_attention" or "torch_compile (a)". They are then
// no longer open. Error(usage) with the line for a student without a submission, an item that the rubric has not or
// that is not written, and points that it does not have.
void add_written(std::vector<Graded>& all, std::string_view text, const std::string& name);

// id,name: what students are called in the instructor's table (a page has the id alone). Whoever handed nothing in gets
// a row.
std::map<std::string, std::string> parse_roster(std::string_view text, const std::string& name);

}  // namespace syslab::grade
