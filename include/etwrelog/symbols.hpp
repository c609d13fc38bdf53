// Names of native code: which PDB belongs to a module of a trace, where it is, and what it says about an
// address. That there is none is no error but a SymbolState and a line that says why.
#pragma once

#include "etwrelog/guid.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace etwrelog {

// What a trace tells of a module. Only merged traces hold the identity of its PDB.
struct ModuleIdentity {
  std::string path;     // as loaded, in the way of Windows: "\Windows\System32\ntdll.dll"
  std::string pdb_name; // name or full path on the machine that built it; empty: the trace has no identity
  Guid pdb_guid{};
  std::uint32_t pdb_age = 0;
  std::uint32_t time_stamp = 0, size = 0; // of the image; 0: not known
};

enum class SymbolState : std::uint8_t {
  found,
  no_identity,     // the trace does not say which PDB belongs to the module: it was not merged
  not_found,       // in none of the places of ModuleSymbols::looked()
  other_identity,  // there is a PDB of that name, but of another build
  compressed_msfz, // found in the compressed form that only Microsoft's tools read
  damaged,         // found, and contradicts the format
  no_pdb_support,  // this program was built without a PDB reader
};
[[nodiscard]] std::string_view symbol_state_name(SymbolState state); // "PDB not found"

struct SymbolFrame {
  std::string_view function; // undecorated, without parameters
  std::string_view file;     // as the compiler was given it; empty: not known
  std::uint32_t line = 0;    // 0: not known
  bool inlined = false;
};

// What one address means. The frames are those of one machine frame, outermost first: the function that holds
// the address, then the calls that the compiler put in place there.
struct SymbolNames {
  std::vector<SymbolFrame> frames;
  std::uint32_t offset = 0; // of the address in the function
  bool estimated = false;   // the nearest symbol below: nothing says how far its code reaches
};

// The symbols of one module, or why there are none. Immutable: any thread.
class ModuleSymbols {
public:
  [[nodiscard]] SymbolState state() const { return state_; }
  // The PDB that was found, or what is kept of it.
  [[nodiscard]] const std::string &file() const { return file_; }
  [[nodiscard]] const std::string &reason() const { return reason_; } // one line for people; empty when found
  [[nodiscard]] const std::vector<std::string> &looked() const { return looked_; } // where, in that order

  // Whether anything is known at `rva`. The views live as long as this object; `names` is reused.
  bool lookup(std::uint32_t rva, SymbolNames &names) const;

  class Table; // the mapped symbol table
  ModuleSymbols(SymbolState state, std::string file, std::string reason, std::vector<std::string> looked,
                std::shared_ptr<const Table> table);

private:
  SymbolState state_ = SymbolState::not_found;
  std::string file_, reason_;
  std::vector<std::string> looked_;
  std::shared_ptr<const Table> table_;
};

struct SymbolOptions {
  std::string path;                 // in the syntax of _NT_SYMBOL_PATH
  std::vector<std::string> folders; // searched first, names of files alone and the layout of a symbol store
  std::vector<std::string> traces;  // also beside them, in TRACE.NGENPDB and in folders of a .etl.zip
  bool network = false; // URLs in `path` and `server` are asked; without, nothing leaves this machine
  std::string server;   // asked after `path`; "": none
  std::string cache;    // folder for symbol tables and downloads; "": kept in memory only
  unsigned threads = 0; // for prepare(); 0: the machine's
  // Of one; what servers send stands in temporary files ($TMPDIR), several at once.
  std::uint64_t max_pdb_bytes = 4ull << 30;
  std::stop_token stop; // ends downloads; what was not found until then counts as not there

  // $_NT_SYMBOL_PATH, and $XDG_CACHE_HOME/etwrelog or ~/.cache/etwrelog.
  [[nodiscard]] static SymbolOptions from_environment();
};

inline constexpr std::string_view kMicrosoftSymbolServer = "https://msdl.microsoft.com/download/symbols";

// Finds and opens symbols. Any thread. A module is looked for once; what it needs stays in the cache for
// other runs.
class SymbolResolver {
public:
  explicit SymbolResolver(SymbolOptions options);
  SymbolResolver(SymbolResolver &&) noexcept;
  SymbolResolver &operator=(SymbolResolver &&) noexcept;
  ~SymbolResolver();

  // Loads several at once; the first are the first to be asked for on the network.
  void prepare(std::span<const ModuleIdentity> modules);
  [[nodiscard]] std::shared_ptr<const ModuleSymbols> load(const ModuleIdentity &module);

  // Of the modules that were asked for so far.
  struct Found {
    std::size_t modules = 0, with_symbols = 0;
  };
  [[nodiscard]] Found found() const;

  [[nodiscard]] const SymbolOptions &options() const;
  // Lines for people: parts of the path that cannot be used, servers that did not answer.
  [[nodiscard]] std::vector<std::string> warnings() const;

  // What this program was built with; network: and whether libcurl, which is loaded then, is on this machine.
  [[nodiscard]] static bool reads_pdb();
  [[nodiscard]] static bool has_network();
  [[nodiscard]] static bool reads_cabinets();

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace etwrelog
