// Compares a manifest with Kubernetes' own schema: types and required fields by the npm package kubernetes-models,
// which is made of it, and that every field is known, which that package lets pass.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { load } from 'js-yaml';
import { Job } from 'kubernetes-models/batch/v1';

const require = createRequire(import.meta.url);
const folders = ['kubernetes-models', '@kubernetes-models/apimachinery'].map((name) => {
  let at = dirname(require.resolve(name));
  while (!at.endsWith(name)) at = dirname(at);
  return join(at, '_schemas');
});

function schemaOf(id) {
  const name = id.replace('#', '').split('.').map((word) => word[0].toUpperCase() + word.slice(1)).join('');
  for (const folder of folders)
    for (const spelled of [name, name.replace(/-(.)/g, (_, c) => c.toUpperCase())]) {
      let text;
      try { text = readFileSync(join(folder, spelled + '.mjs'), 'utf8'); } catch { continue; }
      return JSON.parse(text.slice(text.indexOf('const schema = ') + 15, text.indexOf('\n};') + 2));
    }
  throw new Error(`no schema ${id}`);
}

// Fields that the schema does not name.
function unknown(value, schema, path) {
  for (const part of [...(schema.oneOf ?? []), ...(schema.anyOf ?? []), ...(schema.allOf ?? [])])
    if (part.$ref || part.type === 'object' || part.type === 'array') return unknown(value, part, path);
  if (schema.$ref) return unknown(value, schemaOf(schema.$ref), path);
  if (Array.isArray(value)) return value.flatMap((item, i) => unknown(item, schema.items ?? {}, `${path}[${i}]`));
  if (value === null || typeof value !== 'object' || !schema.properties) return [];
  return Object.entries(value).flatMap(([key, item]) =>
    schema.properties[key] ? unknown(item, schema.properties[key], `${path}.${key}`) : [`${path}.${key}`]);
}

function problems(data) {
  try { new Job(data).validate(); } catch (error) { return [String(error)]; }
  return unknown(data, { $ref: 'io.k8s.api.batch.v1.Job#' }, 'job');
}

const data = load(readFileSync(process.argv[2], 'utf8'));
const found = problems(data);
for (const problem of found) console.error(`${process.argv[2]}: ${problem}`);
// The check itself: what is wrong must be seen.
const twisted = [
  (job) => { job.spec.completions = 'sixteen'; },
  (job) => { job.spec.template.spec.containers[0].volumeMount = []; },
  (job) => { job.spec.template.spec.containers[0].env[0].values = 'x'; },
  (job) => { delete job.spec.template.spec.containers[0].name; },
];
for (const twist of twisted) {
  const wrong = structuredClone(data);
  twist(wrong);
  if (problems(wrong).length === 0) { console.error(`not seen: ${twist}`); process.exit(1); }
}
// What the schema does not say: all places agree about the number of shares.
const container = data.spec.template.spec.containers[0];
const shards = container.env.find((variable) => variable.name === 'ETWRELOG_SHARDS').value;
if (data.spec.completionMode !== 'Indexed' || Number(shards) !== data.spec.completions) {
  console.error('ETWRELOG_SHARDS is not the number of completions of an Indexed Job');
  process.exit(1);
}
process.exit(found.length === 0 ? 0 : 1);
