// The column model: turns events into streams of what could not be predicted, and back.
//
// Encoder and decoder are one template, so that every prediction is computed by the same code on both sides.
// Each event is coded as: its type (predicted from the three before it), one symbol that tells which of its
// fields were mispredicted, and the values of those. See etlz-format.md.
#pragma once

#include "base/pages.hpp"
#include "etlz/model/context_coder.hpp"
#include "etlz/model/fixed_streams.hpp"
#include "etlz/model/learn.hpp"
#include "etlz/model/plan.hpp"
#include "etlz/model/recycled.hpp"
#include "etlz/model/tables.hpp"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>

namespace etwrelog::etlz {

// The part of an event header that all events of a type share. Word 0 holds the first eight bytes without
// Size.
struct Identity {
  std::array<std::uint64_t, 5> word{};
  std::uint8_t words = 1;
  // Word by word: nearly all differ in the first, and a call of memcmp costs more than that.
  bool operator==(const Identity &other) const {
    for (unsigned i = 0; i < words; ++i)
      if (word[i] != other.word[i]) return false;
    return words == other.words;
  }
};

enum class HeaderClass : std::uint8_t { bare, system, compact, perfinfo, classic, event };

struct alignas(8) HeaderShape {
  std::uint8_t size; // bytes before the payload, as the model sees it
  std::uint8_t size_at;
  bool ids, time, cpu_time;
  std::uint8_t cpu_time_at;
  bool activity;
};
inline constexpr HeaderShape kHeaderShapes[] = {
    {0x08, 0, false, false, false, 0, false}, // bare: messages and what is unknown
    {0x20, 4, true, true, true, 0x18, false}, // system
    {0x18, 4, true, true, false, 0, false},   // compact
    {0x10, 4, false, true, false, 0, false},  // perfinfo
    {0x30, 0, true, true, true, 0x28, false}, // classic
    {0x50, 0, true, true, true, 0x38, true},  // event
};
[[nodiscard]] inline const HeaderShape &header_shape(HeaderClass c) {
  return kHeaderShapes[static_cast<std::size_t>(c)];
}
[[nodiscard]] constexpr unsigned identity_words(HeaderClass c) {
  return c == HeaderClass::event ? 5 : c == HeaderClass::classic ? 3 : 1;
}
constexpr HeaderClass class_of_header(format::HeaderType type) {
  using H = format::HeaderType;
  switch (type) {
  case H::system32:
  case H::system64: return HeaderClass::system;
  case H::compact32:
  case H::compact64: return HeaderClass::compact;
  case H::perfinfo32:
  case H::perfinfo64: return HeaderClass::perfinfo;
  case H::full32:
  case H::full64:
  case H::instance32: // the instance part counts as payload
  case H::instance64: return HeaderClass::classic;
  case H::event32:
  case H::event64: return HeaderClass::event;
  default: return HeaderClass::bare;
  }
}
inline constexpr auto kHeaderClasses = [] {
  std::array<HeaderClass, 256> table{};
  for (unsigned i = 0; i < 256; ++i)
    table[i] = class_of_header(static_cast<format::HeaderType>(i));
  return table;
}();
[[nodiscard]] inline HeaderClass header_class(format::HeaderType type) {
  return kHeaderClasses[static_cast<std::uint8_t>(type)];
}

[[nodiscard]] inline Identity identity_of(const EventView &event, HeaderClass c) {
  const std::uint8_t *const at = event.bytes().data();
  Identity id;
  const unsigned size_shift = header_shape(c).size_at * 8u;
  id.word[0] = load<std::uint64_t>(at) & ~(std::uint64_t{0xFFFF} << size_shift);
  id.words = static_cast<std::uint8_t>(identity_words(c));
  for (unsigned i = 1; i < id.words; ++i)
    id.word[i] = load<std::uint64_t>(at + 0x10 + 8 * i);
  return id;
}

struct StreamName { // for --explain
  std::string owner, column;
};

// Which fields of an event were mispredicted: one bit for each question, at a place that the plan fixes.
struct Pattern {
  std::array<std::uint64_t, 4> word{};

  void put(unsigned bit, bool miss) { word[bit >> 6] |= std::uint64_t{miss} << (bit & 63); }
  [[nodiscard]] bool get(unsigned bit) const { return ((word[bit >> 6] >> (bit & 63)) & 1) != 0; }
};

// A pattern of one word: it stays in a register.
struct NarrowPattern {
  std::uint64_t word;

  void put(unsigned bit, bool miss) { word |= std::uint64_t{miss} << bit; }
  [[nodiscard]] bool get(unsigned bit) const { return ((word >> bit) & 1) != 0; }
};

// The answers about the fields, one after the other in the order of the questions. Of a pattern of one word
// they are shifted in from above and out from below: fewer steps than to find the place of each.
struct NarrowAnswers {
  std::uint64_t word;

  void put(bool miss) { word = word >> 1 | std::uint64_t{miss} << 63; }
  void put(bool miss, bool next) {
    word = word >> 2 | (std::uint64_t{miss} | std::uint64_t{next} << 1) << 62;
  }
  [[nodiscard]] bool get() { return (std::exchange(word, word >> 1) & 1) != 0; }
};
struct WideAnswers {
  Pattern &pattern;
  unsigned bit;

  void put(bool miss) { pattern.put(bit++, miss); }
  void put(bool miss, bool next) {
    put(miss);
    put(next);
  }
  [[nodiscard]] bool get() { return pattern.get(bit++); }
};

// The questions about the header, and where those about the fields begin.
enum PatternBit : unsigned {
  kBitPadding,
  kBitThread, // two: the slot, the type's last
  kBitProcess = kBitThread + 2,
  kBitKernelTime = kBitProcess + 2,
  kBitUserTime = kBitKernelTime + 2,
  kBitActivity = kBitUserTime + 2,
  kBitFields,
};

// The patterns of one type by the order of their first occurrence.
class PatternTable {
public:
  static constexpr unsigned kNew = 255;
  // `narrow`: all patterns of the type have but the first word.
  [[nodiscard]] unsigned find(const Pattern &p, bool narrow) {
    std::uint8_t &near = near_[mix(p.word[0]) >> 3 & (near_.size() - 1)];
    if (near < size_ && same(patterns_[near], p.word, narrow)) return near;
    for (unsigned i = 0; i < size_; ++i) {
      if (!same(patterns_[i], p.word, narrow)) continue;
      near = static_cast<std::uint8_t>(i);
      return i;
    }
    return kNew;
  }
  void add(const std::array<std::uint64_t, 4> &word) {
    if (size_ == kNew) return;
    patterns_.push_back(word);
    ++size_;
  }
  [[nodiscard]] unsigned size() const { return size_; }
  [[nodiscard]] const std::array<std::uint64_t, 4> &operator[](unsigned i) const { return patterns_[i]; }

private:
  // Comparing the arrays calls memcmp.
  [[nodiscard]] static bool same(const std::array<std::uint64_t, 4> &a, const std::array<std::uint64_t, 4> &b,
                                 bool narrow) {
    if (narrow) return a[0] == b[0];
    return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3])) == 0;
  }

  Own<std::array<std::uint64_t, 4>> patterns_;
  unsigned size_ = 0;
  std::array<std::uint8_t, 64> near_{}; // where a pattern was found last
};

// Where a simple prediction is read: an array of numbers, and an index into it.
enum Source : std::uint8_t {
  kFromZero,
  kFromPrevious,
  kFromMatch,
  kFromLookup,
  kFromSlots,
  kFromThread,
  kFromTime,
  kFromEvent,
  kFromOwner,
  kComputed, // by predict(), as Predictor tells: the three that follow
  kStep = kComputed,
  kField,
  kChain,
};
struct Guess {
  Source source = kFromZero;
  std::uint8_t at = 0; // of those that are computed: the predictor's argument
};

inline constexpr std::uint16_t kNoSlot = 256; // filled by what fills none

// A field of a plan made ready to run, in the order of coding.
struct FieldStep {
  std::uint8_t index = 0;
  std::uint8_t questions = 0; // 0, 1 or 2
  Kind kind = Kind::number;
  std::uint8_t width = 0; // of a number
  Residual residual = Residual::planes;
  ObjectClass object = ObjectClass::none; // of what is no number
  Guess first, second, base;
  std::uint8_t after = 0; // kAfter...
  bool plain = false;     // a number with two questions, nothing to compute, and nothing behind it but a slot
  std::uint16_t target = kNoSlot; // slot or member
  std::uint8_t text = 0;          // stream group of an object's new content
  std::uint32_t stream = 0;
  std::uint64_t mask = 0;
};
enum : std::uint8_t { kAfterSlot = 1, kAfterMember = 2, kAfterThread = 4, kAfterLead = 8 };

// A field in the order of the payload.
struct FieldPlace {
  Kind kind;
  ObjectClass object; // of what is no number
  std::uint16_t width;
  std::uint16_t at; // of the leading fields of fixed size
  std::uint64_t mask;
};

struct Family {
  Plan plan;
  History history;
  std::vector<FieldStep> steps;
  std::vector<FieldPlace> places;
  unsigned numbers = 0;       // leading fields that are numbers: their places are the same in every event
  unsigned after_numbers = 0; // and where they end
  unsigned questions = 0;
  bool stack = false;       // belongs to another event
  std::uint32_t stream = 0; // first of this family's
  std::array<std::uint32_t, kMaxFields> field_stream{};

  [[nodiscard]] unsigned pattern_words() const { return (kBitFields + questions + 63) / 64; }
  [[nodiscard]] bool narrow() const { return kBitFields + questions <= 64; }
};

struct Type {
  Identity identity;
  HeaderClass header_class = HeaderClass::bare;
  std::uint32_t family = 0;
  std::uint32_t stream = 0; // pattern, then time
  PatternTable patterns;
  std::uint64_t thread_id = 0, activity = 0, kernel_time = 0, user_time = 0; // of the type's last event
  std::uint64_t events = 0;
  std::uint64_t period = 0; // of a type whose events come at a steady rate on each processor
  unsigned periodic = 0;    // its place in Processor::beat
};

// Where the symbols of a model go to, or come from.
enum class Way : std::uint8_t {
  to_streams,
  from_streams,
  to_code, // all streams in one, each symbol where the decoder needs it
  from_code,
};

// A symbol that waits for those which the decoder needs before it.
struct PendingSymbol {
  static constexpr std::uint8_t kByte = 0; // else so many raw bits
  Hint hint;
  std::uint64_t value;
  std::uint32_t stream;
  std::uint8_t bits;
  std::uint8_t symbol; // that the raw bits belong to
};

template <Way kWay> class ModelCore {
public:
  static constexpr bool kDecode = kWay == Way::from_streams || kWay == Way::from_code;
  static constexpr bool kCoupled = kWay == Way::to_code || kWay == Way::from_code;
  using Coder = std::conditional_t<kCoupled, ContextCoder<kDecode>, NoCoder>;
  static constexpr std::size_t kKeptMemory = 24u << 20; // of histories, between segments

  using Stream = std::conditional_t<kDecode, InStream, OutStream>;
  using Bits = std::conditional_t<kDecode, BitReader, BitWriter>;
  using HeaderBytes = std::conditional_t<kDecode, std::uint8_t *, const std::uint8_t *>;

  ModelCore();
  // Forgets all but the memory, for the next segment.
  void reset();
  // Memory that a model of the same segment has filled, or of the one before, at most so much: pages that are
  // there already, and of the size that it takes. That model is to be reset before it is used again.
  template <Way kOther> void take_memory(ModelCore<kOther> &from, std::size_t most) {
    // In reverse, so that each family is likely to get what its like had.
    spare_.clear();
    std::size_t kept = 0;
    for (auto f = from.families_.rbegin(); f != from.families_.rend(); ++f) {
      kept += f->history.memory();
      if (kept < most) spare_.push_back(std::exchange(f->history, History()));
    }
  }

  [[nodiscard]] std::uint32_t add_family(Plan plan);
  // A period is dropped when there are too many.
  [[nodiscard]] std::uint32_t add_type(const Identity &identity, HeaderClass c, std::uint32_t family,
                                       std::uint64_t period = 0);

  // Of the coupled ways: where the symbols go to, or come from, from now on.
  using Code = std::conditional_t<kDecode, Bytes, std::vector<std::uint8_t> &>;
  void start_code(ContextModel &model, unsigned bits, Code code) {
    // clang 14 instantiates it for the other ways, too, whatever it requires.
    if constexpr (kCoupled) coder_.start(model, bits, code);
  }
  [[nodiscard]] Coder &coder() { return coder_; }
  // Codes what waits.
  void flush();
  [[nodiscard]] std::size_t waiting() const { return pending_.size(); }
  // What waits from `middle` on goes before what waits from `first` on.
  void bring_forward(std::size_t first, std::size_t middle) {
    const auto begin = pending_.begin();
    std::rotate(begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(middle),
                pending_.end());
  }
  // For --explain: counts from now on what the symbols of each stream cost.
  void count_costs() { counts_costs_ = true; }
  // Symbols, and bytes of code.
  [[nodiscard]] std::pair<std::size_t, std::size_t> cost(std::uint32_t stream) const {
    if (stream >= costs_.size()) return {0, 0};
    return {costs_[stream].first, static_cast<std::size_t>(costs_[stream].second / 8)};
  }

  // What a segment has besides events. Numbers of the list of parts, and a byte of it.
  unsigned code_part(unsigned kind);
  std::uint64_t code_part_number(std::uint64_t number);
  // `size` bytes as they are, of a stream: `given`, or found and written to `to`. False if there are fewer.
  bool code_raw(std::uint32_t stream, Bytes given, std::uint8_t *to, std::size_t size);

  // One record of a type that stands for no event, such as buffer headers.
  bool code_record(std::uint32_t type, std::uint64_t *values);

  [[nodiscard]] Own<Stream> &streams() { return streams_; }
  [[nodiscard]] Bits &bits() { return bits_; }
  [[nodiscard]] const Own<Type> &types() const { return types_; }
  [[nodiscard]] const Own<Family> &families() const { return families_; }
  [[nodiscard]] std::vector<StreamName> stream_names() const;
  // Memory for objects that a decoder builds: counted by the encoder, kept to by the decoder.
  [[nodiscard]] std::uint64_t object_bytes() const { return object_bytes_; }
  void set_object_bound(std::size_t bytes) { arena_.set_bound(bytes); }

protected:
  void start_record(Family &family) { current_ = family.history.next_row(); }
  [[gnu::always_inline]] inline void code_type(std::uint32_t &type);
  [[gnu::always_inline]] inline void code_header(Type &type, Pattern &pattern, HeaderBytes header);
  [[gnu::always_inline]] inline void code_fields(Family &family, Pattern &pattern);
  [[gnu::always_inline]] inline void code_pattern_symbol(Type &type, const Family &family, Pattern &pattern);
  void start_buffer(std::uint16_t processor);
  void end_buffer();
  void end_event(const Type &type, const Family &family);
  [[nodiscard]] Bytes object(ObjectClass c, std::uint64_t id) const {
    return objects_[static_cast<std::size_t>(c)][id];
  }
  Bytes code_run(std::uint32_t stream, Bytes given, std::size_t size);
  // A byte of a stream: given, or found.
  unsigned code_byte(std::uint32_t stream, unsigned byte);
  [[nodiscard]] bool overrun() const {
    if constexpr (kCoupled && kDecode)
      return coder_.overrun();
    else
      return false;
  }

  Own<Stream> streams_;
  Bits bits_;
  Own<Family> families_;
  Own<Type> types_;
  bool plain_types_ = false; // types are named even where they are foreseen: better for a coder with contexts
  std::uint64_t *current_ = nullptr; // of the record at hand: numbers, and objects by number
  // As arrays that look at no index: those of plans were checked when these were read.
  Bytes content_[kMaxFields] = {}; // and the objects' content, while encoding
  std::uint64_t slots_[kNoSlot + 1] = {};
  std::uint64_t time_ = 0;
  bool failed_ = false;
  Coder coder_;
  Hint hint_, pattern_hint_;
  std::uint32_t pattern_symbol_ = 0, last_pattern_ = 0; // of the record at hand, and of the one before
  std::uint64_t lead_ = 0;                              // of the record at hand, once it is known
  std::vector<PendingSymbol> pending_;
  bool counts_costs_ = false;
  std::vector<std::pair<std::size_t, double>> costs_; // symbols and bits of each stream
  std::vector<std::uint8_t> text_;                    // that found_text() found
  std::size_t behind_type_ = 0;                       // of pending_: what comes behind the event's type

private:
  template <Way kOther> friend class ModelCore;

  static constexpr std::size_t kMostText = 0x10000;
  static constexpr std::size_t kObjectCost = 16;       // bytes, of a coupled decoder
  static constexpr std::size_t kMostPending = 0x10000; // of raw bytes

  void grow_streams(std::size_t count);
  [[nodiscard]] std::uint64_t predict(Guess g, unsigned field) const;
  [[nodiscard, gnu::always_inline]] inline std::uint64_t guess(Guess g, unsigned field) const;
  template <class Answers> void code_fields_as(Family &family, Answers &answers);
  template <bool kPlain, class Answers>
  void code_number(const FieldStep &step, std::uint64_t &value, Answers &answers);
  template <class Answers> void code_object(const FieldStep &step, std::uint64_t &value, Answers &answers);
  void set_field_hint(const FieldStep &step);
  [[gnu::noinline]] void code_residual(const FieldStep &step);
  void set_thread(Threads::Entry &entry) {
    thread_ = &entry;
    base_[kFromThread] = entry.member;
  }
  void code_beat(Type &type, std::uint64_t time);
  // `count` raw bits behind `symbol` of a stream.
  std::uint64_t code_bits(std::uint32_t stream, unsigned symbol, std::uint64_t bits, unsigned count);
  // Text that begins with `first`, up to the zero behind it, without that. Stays until the next one.
  Bytes found_text(std::uint32_t stream, unsigned first);
  [[nodiscard]] Bytes kept(Bytes content);
  void charge_object();
  void code_map_pairs(std::uint64_t count, Bytes content, std::uint8_t *out);
  std::int64_t code_escaped(std::uint32_t stream, unsigned symbol, std::int64_t value);
  void code_word(std::uint32_t stream, std::uint64_t &word); // eight bytes of one stream
  void code_planes(std::uint32_t stream, unsigned width, std::uint64_t &value);
  void code_unsigned(std::uint32_t stream, std::uint64_t &value);
  void code_signed(std::uint32_t stream, std::uint64_t &difference);
  void code_object_number(std::uint32_t stream, ObjectClass c, std::uint32_t text, std::uint64_t near,
                          std::uint64_t &id, Bytes content);
  void code_stack_number(std::uint32_t stream, std::uint64_t &id, Bytes content);
  [[nodiscard]] std::uint64_t known_object(const Objects &objects, std::uint64_t id);
  Bytes code_content(ObjectClass c, std::uint32_t text, Bytes content);
  Bytes code_text(std::uint32_t stream, Bytes content);
  Bytes code_wide(std::uint32_t stream, Bytes content);
  Bytes code_stack(unsigned width, Bytes content);
  Bytes code_map(Bytes content);
  void code_address(std::uint32_t stream, std::uint64_t &value);
  void code_recent(std::uint32_t stream, std::uint64_t &value);
  std::uint64_t &slot(Slot s) { return slots_[static_cast<std::size_t>(s)]; }

  Own<Objects> objects_; // by class
  StackTree stacks_;
  Threads threads_;
  Arena arena_;
  std::vector<std::unique_ptr<Processor>> processors_;
  Processor *processor_ = nullptr;
  Processor::Event *event_ = nullptr; // that the stack at hand belongs to
  Processor::Event no_event_;
  Pages pages_;
  static constexpr std::size_t kStackContexts = 1u << 15;
  // Zeroed pages: most traces have no stacks, and touch none of them.
  base::Pages context_pages_{kStackContexts * sizeof(StackContext)};
  StackContext *stack_contexts_ = static_cast<StackContext *>(context_pages_.data());
  bool contexts_used_ = false;
  StackContext *by_event_ = nullptr, *by_owner_ = nullptr;
  Own<std::uint16_t> next_type_, next_type_short_;
  std::uint32_t type_context_ = 0, type_context_short_ = 0;
  unsigned periodic_ = 0; // types that have a period
  std::size_t history_values_ = 0;
  std::uint64_t object_bytes_ = 0;
  Threads::Entry *thread_ = nullptr;
  // By Source. No std::array, which would look at each index: no other is ever made.
  const std::uint64_t *base_[kComputed] = {};
  const std::uint64_t *before_lookup_row_ = nullptr;
  std::vector<History> spare_;           // memory of earlier families
  std::vector<OutStream> spare_streams_; // and of streams
};

extern template class ModelCore<Way::to_streams>;   // in encode.cpp
extern template class ModelCore<Way::from_streams>; // in decode.cpp
extern template class ModelCore<Way::to_code>;      // in coupled.cpp
extern template class ModelCore<Way::from_code>;

inline constexpr std::uint64_t kMaxPeriod = std::uint64_t{1} << 40; // of events that come at a steady rate
inline constexpr std::uint32_t kMaxTypes = 4000;                    // of a segment; also of kinds

// Ids in the order in which they changed; cheap because neighbours rarely differ.
class IdSet {
public:
  void note(std::uint64_t id) {
    if (id != last_) note_other(id);
  }
  void clear() {
    last_ = ~std::uint64_t{0};
    recent_ = {};
    ids_.clear();
  }
  [[nodiscard]] std::vector<std::uint32_t> sorted() const {
    std::vector<std::uint32_t> all(ids_.begin(), ids_.end());
    std::sort(all.begin(), all.end());
    return all;
  }

private:
  [[gnu::noinline]] void note_other(std::uint64_t id) {
    last_ = id;
    const auto word = static_cast<std::uint32_t>(id);
    std::uint32_t &cached = recent_[(word >> 2) & 255];
    if (cached == word && word != 0) return;
    cached = word;
    ids_.insert(word);
  }

  std::uint64_t last_ = ~std::uint64_t{0};
  std::array<std::uint32_t, 256> recent_{};
  std::unordered_set<std::uint32_t> ids_;
};

// The events of a buffer.
struct BufferEvents {
  Bytes events;
  std::uint16_t processor = 0;
};

template <Way kWay> class EncoderFor : public ModelCore<kWay> {
public:
  using ModelCore<kWay>::add_family, ModelCore<kWay>::add_type;
  // Makes plans for kinds of events that no table knows. Before encoding, with all buffers of the segment.
  void learn(std::span<const BufferEvents> buffers);
  void set_plain_types(bool plain) { this->plain_types_ = plain; }
  void reset();
  // `events` are a buffer's decoded events; they must stay until the model is gone. Returns how many bytes of
  // them were coded: the rest belongs to the caller. The buffers come in the order in which they were
  // learned. `before` is what stood in the buffer's memory before them, as far as that is known.
  [[nodiscard]] std::size_t encode_events(Bytes events, std::uint16_t processor, Bytes before = {});
  // Some of the paddings that are not zero, of a buffer that was learned.
  [[nodiscard]] std::span<const Padding> paddings(std::size_t buffer) const {
    const std::size_t from = buffer == 0 ? 0 : paddings_end_[buffer - 1];
    return std::span(paddings_).subspan(from, paddings_end_[buffer] - from);
  }
  void write_table(std::vector<std::uint8_t> &out) const;

  // Of the events coded so far.
  [[nodiscard]] const IdSet &processes() const { return processes_; }
  [[nodiscard]] const IdSet &threads() const { return threads_seen_; }
  [[nodiscard]] std::int64_t first_time() const { return first_time_; }
  [[nodiscard]] std::int64_t last_time() const { return last_time_; }

private:
  using Core = ModelCore<kWay>;
  using Core::code_byte, Core::code_fields, Core::code_header, Core::code_pattern_symbol, Core::hint_;
  using Core::families_, Core::slots_, Core::start_buffer, Core::start_record, Core::time_, Core::types_;
  using Core::kCoupled, Core::code_type, Core::code_run, Core::streams_, Core::content_, Core::current_,
      Core::end_buffer, Core::end_event;

  struct Kindred { // an identity with its full plan and the types cut from it
    Identity identity;
    Plan plan;
    bool known = false;
    std::unordered_map<std::uint32_t, std::uint32_t> types; // fields << 1 | tail
    std::uint32_t last_variant = ~0u, last_type = 0; // nearly all events of a kind have the same fields
    std::uint32_t samples = 0;
    std::vector<Bytes> sample_payloads;
    std::vector<Sample> first;       // events of the kind
    std::vector<std::uint64_t> gaps; // between events on the first processor that has any
    std::uint64_t last_time = 0, period = 0;
    std::uint32_t processor = ~0u;
    SplitStart start; // the leading fields of fixed size
    // Where the lead is in an event, 0 if that is not known, and the family that it leads in.
    std::size_t lead_at = 0;
    std::uint64_t lead_mask = 0;
    std::uint32_t lead_family = 0;
  };
  void look_ahead(Bytes events, std::size_t at) const;
  void note_padding(Bytes events, std::size_t end, std::size_t most);
  [[nodiscard]] std::uint32_t kindred_of(const EventView &event, HeaderClass c);
  [[nodiscard, gnu::noinline]] std::uint32_t add_kindred(const EventView &event, HeaderClass c,
                                                         const Identity &id, std::size_t slot);
  [[nodiscard]] std::uint32_t type_of(std::uint32_t kindred, HeaderClass c, unsigned fields, bool tail);
  void learn_plans();
  [[nodiscard]] static std::string family_name(const Kindred &kindred, const Plan &plan);

  Own<Kindred> kindreds_;
  Own<std::uint32_t> kindred_by_hash_ = Own<std::uint32_t>(4 * 4096); // open addressing, plus 1
  std::unordered_map<std::string, std::uint32_t> family_by_plan_;
  Own<std::uint16_t> kindred_of_event_; // in the order of the buffers
  std::size_t next_event_ = 0;
  Own<Padding> paddings_;
  Own<std::size_t> paddings_end_; // of each buffer's
  IdSet processes_, threads_seen_;
  std::int64_t first_time_ = INT64_MAX, last_time_ = INT64_MIN;
};

using ModelEncoder = EncoderFor<Way::to_streams>;

template <Way kWay> class DecoderFor : public ModelCore<kWay> {
public:
  using ModelCore<kWay>::add_family, ModelCore<kWay>::add_type;
  [[nodiscard]] bool read_table(InStream &table);
  // Fills exactly `coded` bytes of `events` from the start; false when the streams contradict themselves.
  // `before` as for encode_events.
  [[nodiscard]] bool decode_events(MutableBytes events, std::size_t coded, std::uint16_t processor,
                                   Bytes before = {});

private:
  using Core = ModelCore<kWay>;
  using Core::code_byte, Core::code_fields, Core::code_header, Core::code_pattern_symbol, Core::code_type;
  using Core::current_, Core::end_buffer, Core::end_event, Core::failed_, Core::families_, Core::object;
  using Core::hint_, Core::kCoupled, Core::overrun, Core::start_buffer, Core::start_record, Core::streams_,
      Core::types_;
};

using ModelDecoder = DecoderFor<Way::from_streams>;
using CoupledEncoder = EncoderFor<Way::to_code>;
using CoupledDecoder = DecoderFor<Way::from_code>;

extern template class EncoderFor<Way::to_streams>;
extern template class EncoderFor<Way::to_code>;
extern template class DecoderFor<Way::from_streams>;
extern template class DecoderFor<Way::from_code>;

} // namespace etwrelog::etlz
