// Archives (.etlz): traces made small that come back byte for byte, and can be opened as traces. Any file can
// be packed; one that is no trace is compressed by zstd alone. The format is stable: every archive written by
// a released version can be read by every later one.
//
// Calls may run at once on any threads and keep nothing but what an ArchiveWorkspace is for. Errors:
// `corrupt` for an archive that is damaged, with file and offset; `unsupported` for what is no archive or of
// a later format; `limit` where RunOptions::memory does not do; `io`; `cancelled`. An output exists whole or
// not at all. Packing and unpacking are linear in the decoded size and go over all of RunOptions::threads.
// Sizes are in bytes.
#pragma once

#include "etwrelog/codec.hpp"
#include "etwrelog/io.hpp"
#include "etwrelog/run.hpp"
#include "etwrelog/statistics.hpp"

#include <array>
#include <memory>

namespace etwrelog {

struct LogfileHeader;

using ContentHash =
    std::array<std::uint8_t, 16>; // XXH3-128 of the original, in its canonical (big-endian) form
[[nodiscard]] std::string to_string(const ContentHash &hash); // 32 hexadecimal digits

// Coders, tables and buffers that one call leaves for the next: for many small files, where making them takes
// longer than using them. Any number of calls, on any threads, may share one. What comes out does not depend
// on it.
class ArchiveWorkspace {
public:
  ArchiveWorkspace();
  ~ArchiveWorkspace();
  ArchiveWorkspace(const ArchiveWorkspace &) = delete;
  ArchiveWorkspace &operator=(const ArchiveWorkspace &) = delete;

private:
  friend struct WorkspaceParts; // for the library
  struct State;
  std::unique_ptr<State> state_;
};

// What recorded a trace, as far as its header tells.
enum class SessionKind : std::uint8_t {
  unknown,    // no trace, or no header that can be read
  kernel,     // the kernel logger or another system logger
  user,       // providers that a session enabled
  in_process, // a private logger of one process
  merged,     // several sessions merged into one file
};
[[nodiscard]] std::string_view session_kind_name(SessionKind kind);

struct Session {
  SessionKind kind = SessionKind::unknown;
  std::string name;   // UTF-8
  double seconds = 0; // from start to end; 0 if it was never closed
  std::uint64_t events_lost = 0, buffers_lost = 0;
};
[[nodiscard]] Session session_of(const LogfileHeader &header);

// What a column of an event type's payload takes.
struct ColumnCost {
  std::string owner, column; // event type, column
  std::uint64_t events = 0, in = 0, out = 0;
};

struct PackOptions {
  Level level = Level::normal;
  bool verify = true;                         // decode every segment again before it is written
  std::vector<ColumnCost> *explain = nullptr; // gets a row for each column
  // Keep in the index what collect_statistics() counts, of a trace of any size; from 128 MiB on it always is.
  // Such an archive is never a small one, which has no index. Without, a whole trace has its events counted
  // by type there (ArchiveSummary::tally).
  bool counts = false;
  ArchiveWorkspace *workspace = nullptr;
};

struct PackReport {
  std::uint64_t original = 0, archived = 0; // bytes
  std::uint64_t decoded = 0;                // bytes of the trace's buffers when decompressed
  std::uint64_t segments = 0, events = 0, buffers = 0;
  // Bytes of a trace that are in no whole buffer and not all zero, and the offset in it of the first of them:
  // it is cut short or damaged. They are packed as they are.
  std::uint64_t stray = 0, first_stray = 0;
  // Buffers that the session wrote, if the header of a whole trace tells: more than `buffers` where some are
  // missing (LogfileHeader::missing_buffers).
  std::uint64_t written_buffers = 0;
  std::vector<std::string> warnings; // what the user should know, in words: of stray bytes, missing buffers
  bool is_trace = true;
  bool wrapped = false; // of a gzip or zip file the traces in it were packed, and what makes the file again
  ContentHash content{};
  Session session;
};

// The bytes of the input as they are. Of a trace wrapped in gzip or zip the archive holds the trace, and what
// makes the very same wrapper again; that this gives the same bytes is tried before the first byte of the
// archive is written, whatever options.verify says. Where it does not, or the archive would hardly be
// smaller, the wrapped file is packed as any other file is, as are those of xz, zstd and bzip2. Takes room in
// the temporary folder for the trace and the archive. An archive is not packed again. Memory: the segments in
// flight, within run.memory. What is made of a file, by unpack() too, has its permissions and its time of
// change (Output::like); parts and what joins them as well.
[[nodiscard]] Result<PackReport> pack(const Input &input, const Output &output,
                                      const PackOptions &options = {}, const RunOptions &run = {});

// One huge trace over several machines: each packs a part of it, and join_parts() makes the archive of them
// that pack() makes of the whole, byte for byte. Part 1 reads all of the trace once (what belongs to the
// whole: its hash, its counts) and packs the less of it.
struct PartNumber {
  std::uint32_t number = 1, of = 1; // 1..of
};
[[nodiscard]] Result<PackReport> pack_part(const Input &input, PartNumber part, const Output &output,
                                           const PackOptions &options = {}, const RunOptions &run = {});
// In any order. Decodes nothing. Parts of different originals, levels or numbers of parts, a part that is
// missing or given twice, and damage are errors.
[[nodiscard]] Result<PackReport> join_parts(std::span<const Input> parts, const Output &output,
                                            const RunOptions &run = {});

struct UnpackOptions {
  bool salvage = false; // of a damaged archive take every whole segment
  ArchiveWorkspace *workspace = nullptr;
};

struct UnpackReport {
  std::uint64_t original = 0, archived = 0, segments = 0; // original: bytes given back
  std::vector<Skipped> missing;                           // with salvage; offsets in the original
  bool hash_checked = false;                              // the content hash of the whole was compared
  ContentHash content{};                                  // if so, that hash
};

// With salvage the missing stretches are left out: what is written is whole segments, one after the other.
[[nodiscard]] Result<UnpackReport> unpack(const Input &archive, const Output &output,
                                          const UnpackOptions &options = {}, const RunOptions &run = {});
// Decodes everything and compares all checksums; writes nothing.
[[nodiscard]] Result<UnpackReport> verify(const Input &archive, const UnpackOptions &options = {},
                                          const RunOptions &run = {});
// The same, and reads the original again: before it is deleted. ErrorKind::corrupt if they differ.
[[nodiscard]] Result<UnpackReport> verify_against(const Input &archive, const Input &original,
                                                  const RunOptions &run = {});

struct ArchiveInfo {
  std::uint64_t original = 0, archived = 0;
  bool is_trace = true;
  bool wrapped = false; // the original is a gzip or zip file of one or several traces
  ContentHash content{};
  bool etl_name = true; // that of the original ended in .etl, or is not known and that of a trace
};
// Reads the first and last bytes alone. An input that is no archive: ErrorKind::unsupported.
[[nodiscard]] Result<ArchiveInfo> read_archive_info(const Input &archive);

// Whether these are the bytes of which the archive says that it was made: size and content hash. Reads all of
// the original (nothing of it if the size is another), of the archive its first and last bytes.
[[nodiscard]] Result<bool> is_archive_of(const Input &archive, const Input &original,
                                         const RunOptions &run = {});
// Reads all of it, as it is.
[[nodiscard]] Result<ContentHash> content_hash(const Input &input, const RunOptions &run = {});

// What is known of an archive without decoding any of it.
struct ArchiveSummary : ArchiveInfo {
  bool indexed = true; // false of a small archive, which holds nothing of what follows
  std::uint64_t segments = 0, buffers = 0, events = 0;
  std::optional<Session> session{};           // of one with counts or a tally
  std::shared_ptr<const Statistics> counts{}; // of one that was packed with counts; null otherwise
  // Else of a whole trace, unless an early version packed it: events and their bytes, of all and by type, in
  // no order; of stacks walks, references and frames. Nothing else of it is filled in.
  std::shared_ptr<const Statistics> tally{};
  // Of one with either, unless an early version packed it.
  std::optional<std::vector<NamedProcesses>> processes{};
};
// Reads the index alone.
[[nodiscard]] Result<ArchiveSummary> read_archive_summary(const Input &archive, const RunOptions &run = {});

} // namespace etwrelog
