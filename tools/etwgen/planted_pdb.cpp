#include "planted_pdb.hpp"

#include "base/errors.hpp"
#include "symbols/pdb.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace etwrelog::gen {

Result<PlantedPdb> read_planted_pdb(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file),
                                        std::istreambuf_iterator<char>()};
  if (!file) return base::io_failure("the PDB cannot be read").in(path);
  Result<symbols::RawSymbols> symbols = symbols::read_pdb(bytes, path);
  if (!symbols) return base::in_file(std::move(symbols).error(), path);
  if (symbols->functions.empty()) return base::unsupported("the PDB has no functions").in(path);
  PlantedPdb out;
  out.name = path.substr(path.find_last_of('/') + 1);
  out.guid = symbols->identity.guid;
  out.age = symbols->identity.age;
  out.code = ~0u;
  for (const symbols::FunctionRecord &function : symbols->functions) {
    out.code = std::min(out.code, function.rva);
    out.code_end = std::max(out.code_end, function.rva + function.size);
  }
  return out;
}

} // namespace etwrelog::gen
