// Which schema an event has: the trace's own first, then what was added, then the built-in tables.
#include "base/seed.hpp"
#include "base/sort_unique.hpp"
#include "etwrelog/clr_events.hpp"
#include "etwrelog/kernel_events.hpp"
#include "etwrelog/provider_names.hpp"
#include "etwrelog/text.hpp"
#include "schema/builtin_lookup.hpp"
#include "schema/entry.hpp"
#include "schema/manifest_builds.hpp"
#include "schema/manifest_pieces.hpp"

#include <map>
#include <mutex>
#include <unordered_map>

namespace etwrelog {
namespace {

using schema::Entry;
using schema::Key;
using schema::key_of;
using schema::KeyHash;

constexpr std::size_t kMaxLearned = 200'000;   // schemas out of one trace
constexpr std::size_t kMaxMemory = 192u << 20; // of all of them, about
constexpr std::size_t kMaxMaps = 65'536;
constexpr std::size_t kMaxVariants = 64; // schemas for one kind of event, by builds of its provider

// Of the metadata of a provider's events with one opcode.
std::uint64_t hash_of(Bytes bytes, const Guid &provider, unsigned opcode) {
  std::uint64_t h =
      base::hash_seed() ^ provider.low ^ provider.high ^ opcode ^ bytes.size() * 0x9E37'79B9'7F4A'7C15ull;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8)
    h = (h ^ load<std::uint64_t>(bytes.data() + i)) * 0xD6E8'FEB8'6659'FD93ull, h ^= h >> 32;
  for (; i < bytes.size(); ++i)
    h = (h ^ bytes[i]) * 0xD6E8'FEB8'6659'FD93ull, h ^= h >> 32;
  return h;
}

// The TraceLogging metadata of an event; empty if it has none.
Bytes metadata_of(const EventView &event) {
  if (!event.has_items()) return {};
  ExtendedItems items = event.items();
  ExtendedItem item{};
  while (items.next(item))
    if (item.type == format::ItemType::schema_tl) return item.data;
  return {};
}

// Whether some value has a name in both, and not the same one. That a map has more names is nothing.
bool contradict(const ValueMap &a, const ValueMap &b) {
  if (a.bits != b.bits) return !a.entries.empty() && !b.entries.empty();
  for (auto x = a.entries.begin(), y = b.entries.begin(); x != a.entries.end() && y != b.entries.end();) {
    if (x->value == y->value && x->name != y->name) return true;
    const bool first = x->value <= y->value, second = y->value <= x->value;
    x += first ? 1 : 0, y += second ? 1 : 0;
  }
  return false;
}

bool same_fields(const Schema &a, const Entry &b) {
  return std::ranges::equal(a.fields, b.fields, schema::same_shape);
}

// Whether an event says the same by both.
bool same_meaning(const Schema &a, const Entry &b) {
  if (a.name != b.schema.name || !same_fields(a, b)) return false;
  for (std::size_t i = 0; i < a.fields.size(); ++i) {
    const int mine = a.fields[i].map, other = b.fields[i].map;
    if (mine >= 0 && other >= 0 &&
        contradict(*a.maps[static_cast<std::size_t>(mine)], *b.maps[static_cast<std::size_t>(other)]))
      return false;
  }
  return true;
}

} // namespace

struct SchemaCatalog::Impl final : schema::InfoKeeper {
  std::vector<std::shared_ptr<const Entry>> entries; // learned or added
  std::vector<const Schema *> all;
  std::unordered_map<Key, const Schema *, KeyHash> infos, class_infos, added, messages;
  struct Described {
    const Schema *schema;
    std::uint32_t build;                                 // that said so
    std::uint32_t group = schema::ManifestBuilds::kNone; // of builds that say something else
  };
  std::unordered_map<Key, Described, KeyHash> manifests;
  schema::ManifestBuilds builds;
  struct Traced {
    Guid provider;
    std::uint8_t opcode;
    std::vector<std::uint8_t> metadata;
    const Schema *schema; // null: it contradicts itself
  };
  std::unordered_multimap<std::uint64_t, Traced> traced; // TraceLogging, by hash
  std::unordered_map<Guid, std::string> providers;
  std::map<std::pair<Guid, std::string>, std::shared_ptr<ValueMap>> maps;
  schema::ManifestJoiner joiner;
  // Never moves: others may hold it, while a look-up that was a guess adds to it. `torn`: those of them that
  // are the joiner's.
  struct Problems {
    std::vector<std::string> texts;
    std::mutex mutex;

    Problems() { texts.reserve(schema::kMaxProblems); }
    Problems(const Problems &other) : Problems() {
      texts.insert(texts.end(), other.texts.begin(), other.texts.end());
    }
    Problems &operator=(const Problems &) = delete;

    void add(std::string text) {
      if (text.empty() || texts.size() >= schema::kMaxProblems) return;
      if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
    }
  };
  mutable Problems problems;
  std::vector<std::string> torn;
  std::size_t memory = 0;

  std::shared_ptr<ValueMap> find(const Guid &provider, const std::string &name) override {
    std::shared_ptr<ValueMap> &map = maps[{provider, name}];
    if (!map) {
      map = std::make_shared<ValueMap>();
      map->name = name;
      memory += sizeof(ValueMap) + 3 * name.size() + 128;
    }
    return map;
  }

  void took(std::size_t bytes) override { memory += bytes; }
  bool wants(const Schema &key, std::uint32_t decoding_source) override {
    if (decoding_source > 1) return false; // WPP and TraceLogging say themselves what they are
    return !infos_of(decoding_source).contains(key_of(key.provider, key.id, key.version, key.opcode));
  }
  std::unordered_map<Key, const Schema *, KeyHash> &infos_of(std::uint32_t decoding_source) {
    return decoding_source == 0 ? infos : class_infos;
  }

  void problem(std::string text) { problems.add(std::move(text)); }
  [[nodiscard]] std::span<const std::string> all_problems() const {
    const std::lock_guard lock(problems.mutex);
    for (const Guid &provider : builds.guessed())
      problems.add("provider " + shown_name(provider) +
                   ": its manifests are of several builds that say different things of one event; those of "
                   "processes without one of their own, or with several, are decoded as the first says");
    return problems.texts;
  }

  [[nodiscard]] bool has_room() {
    if (entries.size() < kMaxLearned && memory + builds.memory() < kMaxMemory && maps.size() < kMaxMaps)
      return true;
    problem("more schemas than 200000 or 192 MiB: the rest is not decoded");
    return false;
  }

  const Schema *store(std::unique_ptr<Entry> entry) {
    entry->schema.ordinal = static_cast<std::uint32_t>(all.size());
    memory += entry->memory();
    entries.push_back(std::move(entry));
    all.push_back(&entries.back()->schema);
    return all.back();
  }

  // Out of the trace or the built-in list; empty if not known.
  [[nodiscard]] std::string_view provider_name(const Guid &guid) const {
    if (const std::string_view known = etwrelog::provider_name(guid); !known.empty()) return known;
    const auto found = providers.find(guid);
    return found == providers.end() ? std::string_view() : std::string_view(found->second);
  }

  [[nodiscard]] std::string shown_name(const Guid &guid) const {
    const std::string_view known = provider_name(guid);
    return known.empty() ? to_string(guid) : std::string(known);
  }

  void name_provider(const Guid &guid, std::string_view name) {
    if (!name.empty() && providers.size() < kMaxLearned) providers.try_emplace(guid, name);
  }

  void learn_event_info(Bytes payload) {
    std::string text;
    std::optional<schema::EventInfo> info = schema::read_event_info(payload, *this, text);
    problem(std::move(text));
    if (!info) return;
    const Schema &s = info->entry->schema;
    const Key key = key_of(s.provider, s.id, s.version, s.opcode);
    name_provider(info->provider, s.provider_name);
    infos_of(info->decoding_source).emplace(key, store(std::move(info->entry)));
  }

  // `process`: that wrote it.
  void learn_manifest(std::string_view text, const Guid &of, std::uint32_t process) {
    const auto [build, fresh] = builds.build_of(of, text);
    if (build != schema::ManifestBuilds::kNone) builds.add_writer(of, process, build);
    if (!fresh) return;
    std::vector<std::string> dropped;
    auto providers_read = schema::read_manifest(text, Origin::manifest, dropped);
    if (!providers_read) {
      problem("manifest of " + to_string(of) + ": " + providers_read.error().message());
      return;
    }
    for (const std::string &why : dropped)
      problem("manifest of " + to_string(of) + ": " + why);
    for (schema::ManifestProvider &provider : *providers_read) {
      name_provider(provider.guid, provider.name);
      for (std::unique_ptr<Entry> &entry : provider.events) {
        const Key key = key_of(provider.guid, entry->schema.id, entry->schema.version, 0);
        if (const auto known = manifests.find(key); known != manifests.end()) {
          if (provider.guid == of && known->second.build != build)
            learn_variant(known->second, of, build, entry);
          else if (!same_fields(*known->second.schema, *entry))
            several_say(provider.guid, entry->schema.id);
          continue;
        }
        if (!has_room()) return;
        manifests.emplace(key, Described{store(std::move(entry)), build});
      }
    }
  }

  void learn_variant(Described &known, const Guid &provider, std::uint32_t build,
                     std::unique_ptr<Entry> &entry) {
    if (same_meaning(*known.schema, *entry)) return;
    if (builds.is_last(known.group, build)) return several_say(provider, entry->schema.id);
    const Schema *same = nullptr;
    if (has_room() && build != schema::ManifestBuilds::kNone) {
      const auto others = builds.schemas(known.group);
      const auto at =
          std::ranges::find_if(others, [&](const Schema *other) { return same_meaning(*other, *entry); });
      if (at != others.end())
        same = *at;
      else if (others.size() < kMaxVariants)
        same = store(std::move(entry));
    }
    known.group = builds.add_variant(known.group, provider, build, same);
  }

  void several_say(const Guid &provider, unsigned id) {
    problem("provider " + shown_name(provider) + ", event " + std::to_string(id) +
            ": two manifests say other fields for one version of it; all are decoded as the first says");
  }

  void add_providers(std::vector<schema::ManifestProvider> read) {
    for (schema::ManifestProvider &provider : read) {
      name_provider(provider.guid, provider.name);
      for (std::unique_ptr<Entry> &entry : provider.events) {
        const Key key = key_of(provider.guid, entry->schema.id, entry->schema.version, 0);
        if (const auto known = added.find(key); known != added.end()) {
          if (!same_fields(*known->second, *entry)) several_say(provider.guid, entry->schema.id);
          continue;
        }
        if (!has_room()) return;
        added.emplace(key, store(std::move(entry)));
      }
    }
  }

  void learn_piece(const schema::ManifestPiece &piece) {
    if (const auto whole = joiner.add(piece)) learn_manifest(*whole, piece.provider, piece.process);
  }
  // What is not whole is a problem until it is.
  void note_torn() {
    std::erase_if(problems.texts,
                  [&](const std::string &text) { return std::ranges::find(torn, text) != torn.end(); });
    torn.clear();
    for (const auto &[guid, pieces] : joiner.torn()) {
      torn.push_back("manifest of " + shown_name(guid) + ": only some of its " + std::to_string(pieces) +
                     " pieces are there, so that its events are not decoded");
    }
    for (const std::string &text : torn)
      problem(text);
    if (joiner.too_many())
      problem("manifests in pieces of more than 16 MiB, or of more than 64 MiB at once: some are not read");
  }

  [[nodiscard]] const Traced *find_traced(const Guid &provider, std::uint8_t opcode, Bytes metadata) const {
    const auto [begin, end] = traced.equal_range(hash_of(metadata, provider, opcode));
    for (auto at = begin; at != end; ++at)
      if (at->second.provider == provider && at->second.opcode == opcode &&
          std::equal(metadata.begin(), metadata.end(), at->second.metadata.begin(),
                     at->second.metadata.end()))
        return &at->second;
    return nullptr;
  }

  void learn_traced(const EventView &event, Bytes metadata) {
    const Guid provider = event.provider();
    if (find_traced(provider, event.opcode(), metadata) != nullptr || !has_room()) return;
    Traced row{provider, event.opcode(), {metadata.begin(), metadata.end()}, nullptr};
    memory += metadata.size() + sizeof row + 64;
    std::string text;
    if (std::unique_ptr<Entry> entry = schema::read_trace_logging(metadata, text)) {
      entry->schema.provider = provider, entry->schema.id = event.id();
      entry->schema.version = event.version(), entry->schema.opcode = event.opcode();
      if (const auto named = providers.find(provider); named != providers.end())
        entry->schema.provider_name = entry->keep(named->second);
      row.schema = store(std::move(entry));
    }
    problem(std::move(text));
    traced.emplace(hash_of(metadata, provider, event.opcode()), std::move(row));
  }

  void learn_traits(const EventView &event) {
    ExtendedItems items = event.items();
    ExtendedItem item{};
    while (items.next(item)) {
      if (item.type != format::ItemType::provider_traits || item.data.size() < 4) continue;
      if (providers.contains(event.provider())) return;
      const Bytes text = item.data.subspan(2);
      const auto end = static_cast<std::size_t>(std::find(text.begin(), text.end(), 0) - text.begin());
      name_provider(event.provider(), utf8_from_bytes(text.first(end)));
    }
  }
};

SchemaCatalog::SchemaCatalog() {
  static const std::shared_ptr<Impl> empty = [] {
    auto impl = std::make_shared<Impl>();
    for (const schema::BuiltinEntry &row : schema::builtin_entries())
      impl->all.push_back(&row.entry->schema);
    return impl;
  }();
  impl_ = empty;
}

const SchemaCatalog &SchemaCatalog::builtin() {
  static const SchemaCatalog catalog;
  return catalog;
}

SchemaCatalog::Impl &SchemaCatalog::own() {
  if (impl_.use_count() != 1) impl_ = std::make_shared<Impl>(*impl_);
  return *impl_;
}

struct Teaching {
  static SchemaCatalog::Impl &of(SchemaCatalog &catalog) { return catalog.own(); }
};

Result<void> schema::add_manifest(SchemaCatalog &catalog, std::string_view xml, const std::string &name) {
  std::vector<std::string> dropped;
  auto read = read_manifest(xml, Origin::added, dropped);
  if (!read) return std::move(read).error();
  SchemaCatalog::Impl &mine = Teaching::of(catalog);
  for (const std::string &why : dropped)
    mine.problem(name + ": " + why);
  mine.add_providers(*std::move(read));
  return {};
}

void schema::learn_pieces(SchemaCatalog &catalog, const ManifestPieces &pieces) {
  if (pieces.empty()) return;
  SchemaCatalog::Impl &mine = Teaching::of(catalog);
  for (const ManifestPiece &piece : pieces.in_order())
    mine.learn_piece(piece);
  mine.note_torn();
  if (pieces.too_many())
    mine.problem("manifests in more pieces than 262144, or of more than 64 MiB: some are not read");
}

Result<void> SchemaCatalog::add_manifest(std::string_view xml) {
  return schema::add_manifest(*this, xml, "manifest");
}

Result<void> SchemaCatalog::add_tmf(std::string_view text) {
  std::vector<std::string> dropped;
  auto read = schema::read_tmf(text, dropped);
  if (!read) return std::move(read).error();
  Impl &mine = own();
  for (std::string &why : dropped)
    mine.problem(std::move(why));
  for (schema::TraceMessage &message : *read) {
    const Key key = key_of(message.guid, message.number, 0, 0);
    if (mine.messages.contains(key)) continue;
    if (!mine.has_room()) break;
    mine.messages.emplace(key, mine.store(std::move(message.entry)));
  }
  return {};
}

bool SchemaCatalog::teaches(const EventView &event) {
  if (event.is_classic()) return event.provider() == format::kMetaDataGuid && (event.opcode() & ~1u) == 32;
  return event.is_event() && (event.has_items() || event.id() == format::kManifestEventId);
}

bool SchemaCatalog::learn(const EventView &event) {
  if (!teaches(event)) return false;
  if (event.is_classic()) {
    Impl &mine = own();
    std::string text;
    if (event.opcode() == 32) {
      if (mine.has_room()) mine.learn_event_info(event.payload());
    } else if (mine.has_room()) {
      static_cast<void>(schema::read_map_info(event.payload(), mine, text));
    }
    mine.problem(std::move(text));
    return true;
  }
  if (const Bytes metadata = metadata_of(event); !metadata.empty()) {
    if (impl_->find_traced(event.provider(), event.opcode(), metadata) != nullptr) return false;
    Impl &mine = own();
    mine.learn_traits(event);
    mine.learn_traced(event, metadata);
    return false; // it carries a schema, and is an event all the same
  }
  if (const auto piece = schema::ManifestPiece::of(event)) {
    Impl &mine = own();
    mine.learn_piece(*piece);
    mine.note_torn();
    return true;
  }
  if (event.has_items() && !impl_->providers.contains(event.provider())) own().learn_traits(event);
  return false;
}

bool SchemaCatalog::learns(const EventView &event) const {
  if (!teaches(event)) return false;
  if (!event.has_items()) return true;
  bool traits = false;
  ExtendedItems items = event.items();
  ExtendedItem item{};
  while (items.next(item)) {
    if (item.type == format::ItemType::schema_tl)
      return impl_->find_traced(event.provider(), event.opcode(), item.data) == nullptr;
    traits = traits || item.type == format::ItemType::provider_traits;
  }
  return event.id() == format::kManifestEventId || (traits && !impl_->providers.contains(event.provider()));
}

std::span<const std::string> SchemaCatalog::problems() const {
  return impl_->all_problems();
}

const Schema *SchemaCatalog::find(const EventView &event) const noexcept {
  const schema::BuiltinLookup &builtin = schema::builtin_lookup();
  auto look = [](const auto &table, const Key &key) -> const Schema * {
    const auto found = table.find(key);
    return found == table.end() ? nullptr : found->second;
  };
  if (event.has_hook()) {
    if (!impl_->class_infos.empty())
      if (const Schema *s =
              look(impl_->class_infos, key_of(event.provider(), 0, event.version(), event.opcode())))
        return s;
    return builtin.of_hook(event.hook(), event.version());
  }
  if (event.is_event()) {
    const Guid provider = event.provider();
    if (const Bytes metadata = metadata_of(event); !metadata.empty()) {
      const Impl::Traced *traced = impl_->find_traced(provider, event.opcode(), metadata);
      return traced == nullptr ? nullptr : traced->schema;
    }
    const unsigned id = event.id(), version = event.version();
    if (const Schema *s = look(impl_->infos, key_of(provider, id, version, event.opcode()))) return s;
    const Key key = key_of(provider, id, version, 0);
    if (id != format::kManifestEventId) {
      if (const auto found = impl_->manifests.find(key); found != impl_->manifests.end()) {
        const auto &[usual, build, group] = found->second;
        if (group == schema::ManifestBuilds::kNone) return usual;
        return impl_->builds.schema_of(group, usual, event.process_id());
      }
      if (const Schema *s = look(impl_->added, key)) return s;
    }
    return builtin.of_event(provider, id, event.version());
  }
  if (event.is_message()) return look(impl_->messages, key_of(event.provider(), event.id(), 0, 0));
  if (!event.is_classic()) return nullptr;
  const Guid provider = event.provider();
  if (const Schema *s = look(impl_->class_infos, key_of(provider, 0, event.version(), event.opcode())))
    return s;
  return builtin.of_class(provider, event.opcode(), event.version());
}

FieldRange SchemaCatalog::fields(const EventView &event) const {
  FieldRange range;
  const Schema *found = find(event);
  if (found == nullptr) return range;
  auto narrow = std::make_shared<const Decoder>(*found, 4), wide = std::make_shared<const Decoder>(*found, 8);
  range.decoder_ = &fitting_decoder(event, *narrow, *wide) == narrow.get() ? narrow : wide;
  range.values_.resize(range.decoder_->value_count());
  range.values_.resize(range.decoder_->decode(event.payload(), range.values_).values);
  return range;
}

std::string_view SchemaCatalog::provider_name(const Guid &guid) const {
  return impl_->provider_name(guid);
}

std::vector<Guid> SchemaCatalog::providers_called(std::string_view name) const {
  std::vector<Guid> found;
  if (const auto known = provider_by_name(name)) found.push_back(*known);
  for (const auto &[guid, own] : impl_->providers)
    if (schema::same_name(own, name)) found.push_back(guid);
  for (const Schema *one : all())
    if (schema::same_name(one->provider_name, name)) found.push_back(one->provider);
  base::sort_unique(found);
  return found;
}

void SchemaCatalog::append_name(const EventView &event, std::string &out) const {
  const Schema *found = find(event);
  if (event.has_hook()) {
    out += "Windows Kernel/";
    if (found != nullptr) {
      out += found->name;
      return;
    }
    const std::string_view group = kernel::group_name(static_cast<std::uint8_t>(event.hook() >> 8));
    out += group.empty() ? "Hook(" + std::to_string(event.hook()) + ")" : std::string(group);
    out += "/Opcode(" + std::to_string(event.opcode()) + ")";
    return;
  }
  if (event.is_message()) out += "WPP/";
  const Guid provider = event.provider();
  const std::string_view known =
      found != nullptr && !found->provider_name.empty() ? found->provider_name : provider_name(provider);
  out += known.empty() ? to_string(provider) : std::string(known);
  out += '/';
  if (found != nullptr)
    out += found->name;
  else if (event.is_message())
    out += "Message(" + std::to_string(event.id()) + ")";
  else if (event.is_classic())
    out += "Opcode(" + std::to_string(event.opcode()) + ")";
  else if (event.id() == format::kManifestEventId && event.opcode() == format::kManifestOpcode)
    out += "ManifestData";
  else if (const std::string_view name = clr::event_name(provider, event.id()); !name.empty())
    out += name; // of which the name alone is known
  else
    out += "EventID(" + std::to_string(event.id()) + ")";
}

std::span<const Schema *const> SchemaCatalog::all() const {
  return impl_->all;
}

} // namespace etwrelog
