// Draws the figures of a database into a folder, to be looked at: draw DATABASE FOLDER EXPERIMENT…
#include <filesystem>
#include <fstream>
#include <iostream>

#include "report/figure/figure.hpp"

int main(int argc, char** argv) {
  using namespace syslab;
  const store::Store store = store::Store::open(argv[1], store::Mode::read_only);
  const std::filesystem::path folder = argv[2];
  std::vector<report::FigureSource> sources;
  for (int i = 3; i < argc; ++i) {
    for (auto& source : report::figures_of(argv[i])) sources.push_back(source);
  }
  for (const report::Figure& figure : report::draw_figures(sources, store, {.pdf = true})) {
    std::cout << figure.experiment << "/" << figure.id << ": " << figure.svg.size() << " B SVG, " << figure.pdf.size()
              << " B PDF " << figure.missing << "\n";
    for (const std::string& note : figure.notes) std::cout << "  " << note << "\n";
    if (figure.svg.empty()) continue;
    std::ofstream(folder / (figure.experiment + "-" + figure.id + ".svg")) << figure.svg;
    std::ofstream(folder / (figure.experiment + "-" + figure.id + ".pdf")) << figure.pdf;
  }
}
