// The symbols of one module, sorted by address: made once out of a PDB, kept in a file, mapped from then on.
#pragma once

#include "etwrelog/bytes.hpp"
#include "etwrelog/error.hpp"
#include "etwrelog/guid.hpp"
#include "etwrelog/symbols.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace etwrelog::symbols {

struct Identity {
  Guid guid{};
  std::uint32_t age = 0;
  bool operator==(const Identity &) const = default;
};

// Records of the file, little-endian, without padding. Strings are offsets into one block of terminated
// strings.
struct FunctionRecord {
  std::uint32_t rva = 0, size = 0; // size 0: a public symbol, which only says where it begins
  std::uint32_t name = 0;          // kNothing: no code of a known name from here on
  std::uint32_t first_inline = 0, inlines = 0;
};
struct InlineRecord { // those of one function: by depth, then by address
  std::uint32_t rva = 0, end = 0, name = 0, file = 0, line = 0, depth = 0;
};
struct LineRecord { // by address; line 0 ends a stretch
  std::uint32_t rva = 0, file = 0, line = 0;
};
inline constexpr std::uint32_t kNothing = 0xFFFF'FFFF;

struct TableHeader {
  char magic[8] = {'E', 'T', 'W', 'R', 'S', 'Y', 'M', '1'};
  std::uint8_t guid[16] = {};
  std::uint32_t age = 0, functions = 0, inlines = 0, lines = 0;
  std::uint64_t strings = 0;   // bytes; the last is 0
  std::uint64_t pdb_bytes = 0; // of the file that it was made of
  std::uint32_t pdb_path = 0, reserved = 0;
};
static_assert(sizeof(TableHeader) == 64 && sizeof(FunctionRecord) == 20 && sizeof(InlineRecord) == 24 &&
              sizeof(LineRecord) == 12);

// Strings stored once; offset 0 is the empty one.
class StringBlock {
public:
  StringBlock() { bytes_.push_back(0); }
  std::uint32_t add(std::string_view text); // kept apart from equal ones: names of functions rarely repeat
  std::uint32_t intern(std::string_view text);
  [[nodiscard]] const std::vector<std::uint8_t> &bytes() const { return bytes_; }

private:
  std::vector<std::uint8_t> bytes_;
  std::unordered_map<std::string, std::uint32_t> known_;
};

// What a PDB reader finds, in any order.
struct RawSymbols {
  Identity identity;
  StringBlock strings;
  std::vector<FunctionRecord> functions, publics, ends; // `ends`: where sections end
  std::vector<InlineRecord> inlines;
  std::vector<LineRecord> lines;
  std::uint64_t pdb_bytes = 0;
  std::string pdb_path;
};

// The file's bytes, all of them.
[[nodiscard]] std::vector<std::uint8_t> make_table(RawSymbols &&raw);

// A view of a table's bytes. Every offset in them is checked when it is used: a file in a cache is input like
// any other.
class TableView {
public:
  // Sizes must add up; that takes no more than a look at the header.
  static Result<TableView> open(Bytes bytes);

  [[nodiscard]] Identity identity() const;
  [[nodiscard]] std::uint64_t pdb_bytes() const { return header_.pdb_bytes; }
  [[nodiscard]] std::string_view pdb_path() const { return text(header_.pdb_path); }
  [[nodiscard]] std::size_t functions() const { return header_.functions; }
  [[nodiscard]] FunctionRecord function(std::size_t index) const;
  [[nodiscard]] std::string_view text(std::uint32_t offset) const;
  bool lookup(std::uint32_t rva, SymbolNames &names) const;

private:
  [[nodiscard]] InlineRecord inlined(std::size_t index) const;
  [[nodiscard]] LineRecord line(std::size_t index) const;
  void add_inlines(const FunctionRecord &function, std::uint32_t rva, SymbolNames &names) const;
  TableHeader header_;
  Bytes functions_, inlines_, lines_, strings_;
};

} // namespace etwrelog::symbols
