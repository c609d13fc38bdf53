// Compares a manifest with Kubernetes' own schema: types and required fields by the npm package kubernetes-models,
// which is made of it, and that every field is known, which that package leaves to the compiler of TypeScript.
import { readFileSync, writeFileSync } from 'node:fs';
import { load } from 'js-yaml';
import { Job } from 'kubernetes-models/batch/v1';
import ts from 'typescript';

// As literals, which may have no field that their type has not.
function unknown(jobs) {
  const names = jobs.map((job, i) => {
    const name = new URL(`./job${i}.ts`, import.meta.url).pathname;
    writeFileSync(name, `import type { IJob } from 'kubernetes-models/batch/v1';
export const job: IJob = ${JSON.stringify(job)};
`);
    return name;
  });
  const how = { noEmit: true, strict: true, skipLibCheck: true, types: [], module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext, target: ts.ScriptTarget.ES2022 };
  const program = ts.createProgram(names, how);
  return names.map((name) => ts.getPreEmitDiagnostics(program, program.getSourceFile(name))
    .map((found) => ts.flattenDiagnosticMessageText(found.messageText, ' ')));
}

function invalid(data) {
  try { new Job(data).validate(); } catch (error) { return [String(error)]; }
  return [];
}

const data = load(readFileSync(process.argv[2], 'utf8'));
// The check itself: what is wrong must be seen.
const twisted = [
  (job) => { job.spec.completions = 'sixteen'; },
  (job) => { job.spec.template.spec.containers[0].volumeMount = []; },
  (job) => { job.spec.template.spec.containers[0].env[0].values = 'x'; },
  (job) => { delete job.spec.template.spec.containers[0].name; },
  (job) => { job.spec.backoffLimitByIndex = 4; },
  (job) => { delete job.spec.podFailurePolicy.rules[0].action; },
];
const jobs = [data, ...twisted.map((twist) => {
  const wrong = structuredClone(data);
  twist(wrong);
  return wrong;
})];
const [found, ...seen] = unknown(jobs).map((problems, i) => [...invalid(jobs[i]), ...problems]);
for (const problem of found) console.error(`${process.argv[2]}: ${problem}`);
seen.forEach((problems, i) => {
  if (problems.length === 0) { console.error(`not seen: ${twisted[i]}`); process.exit(1); }
});
// What the schema does not say: all places agree about the number of shares.
const container = data.spec.template.spec.containers[0];
const shards = container.env.find((variable) => variable.name === 'ETWRELOG_SHARDS').value;
if (data.spec.completionMode !== 'Indexed' || Number(shards) !== data.spec.completions) {
  console.error('ETWRELOG_SHARDS is not the number of completions of an Indexed Job');
  process.exit(1);
}
// One share must not use up the tries of the others, which takes pods that are not started again in place.
if (!(data.spec.backoffLimitPerIndex > 0) || data.spec.backoffLimit !== undefined ||
    data.spec.template.spec.restartPolicy !== 'Never') {
  console.error('tries are not counted by share: backoffLimitPerIndex with restartPolicy Never');
  process.exit(1);
}
process.exit(found.length === 0 ? 0 : 1);
