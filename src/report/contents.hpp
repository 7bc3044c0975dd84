// The contents of a hand-in: its problems by the hand-out's sections, each with a place to go to and those of its
// letters.
#pragma once

#include <string>
#include <vector>

#include "report/document.hpp"

namespace syslab::report {

struct ListedSection {
  std::string name;
  std::vector<const Heading*> problems;  // of the document
};

// Headings that are listed, in the document's order; those of one section that follow each other are together.
std::vector<ListedSection> contents_of(const Document& document);

}  // namespace syslab::report
