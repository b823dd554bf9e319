import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { verbatimBody } from './raw-client.ts';

export type Form = 'whole' | 'delta' | 'journal';

/** One step of a pipeline: the call that saves its result, with a compressed body. */
export interface Step {
  readonly call: 'checkpointverbatim' | 'checkpointdelta' | 'journalentries';
  readonly body: Buffer;
  /** Resources of the state after it, as JSON texts, in any order. */
  readonly resources: readonly string[];
}

/** What a pipeline sends: the state it begins with, its steps, and the state after them. */
export interface Script {
  readonly base: Buffer;
  readonly steps: readonly Step[];
  /** Resources of the final state, as JSON texts, in any order. */
  readonly resources: readonly string[];
}

/**
 * Builds a script of `steps` steps over a state of about `bytes` bytes. Each step updates `changes` resources of 1.6 kB, a tenth of
 * which does not compress.
 */
export function scriptOf(form: Form, bytes: number, steps: number, changes: number): Script {
  const base = resourcesOf(bytes);
  const list = [...stepsFrom(form, base, { steps, changes })];
  return { base: documentOf(base), steps: list, resources: list.at(-1)?.resources ?? base };
}

/** The resources of a new state of about `bytes` bytes, as JSON texts. */
export function resourcesOf(bytes: number): string[] {
  const count = Math.max(1, Math.round(bytes / resourceText(0, 0).length));
  return Array.from({ length: count }, (_, index) => resourceText(index, 0));
}

/**
 * Builds one step after another, from a state with these resources in this order. `revision` distinguishes what one update writes from
 * what another does.
 */
export function* stepsFrom(
  form: Form,
  base: readonly string[],
  { changes, revision = 0, steps }: { readonly steps: number; readonly changes: number; readonly revision?: number },
): Generator<Step> {
  const resources = [...base];
  for (let step = 1; step <= steps; step++) {
    const places = Array.from({ length: changes }, (_, at) => ((step - 1) * changes + at) % base.length);
    const indexes = [...new Set(places)];
    const before = [...resources];
    for (const index of indexes) resources[index] = resourceText(numberOf(base[index] as string), revision + step);
    if (form === 'journal') yield entriesOf(step, indexes, resources);
    else if (form === 'whole' || step === 1) yield wholeOf(step, resources);
    else yield deltaOf(step, before, resources);
  }
}

/** The number in the name of a resource. The server may return the resources in another order than that of their numbers. */
const numberOf = (resource: string): number => Number(/::r(\d+)"/.exec(resource)?.[1]);

function resourceText(index: number, revision: number): string {
  const urn = `urn:pulumi:dev::bench::aws:ec2/instance:Instance::r${index}`;
  const id = createHash('sha256').update(`${urn}${revision}`).digest('hex');
  const inputs = {
    ami: `ami-${id.slice(0, 17)}`,
    instanceType: 't3.medium',
    subnetId: `subnet-${id.slice(20, 37)}`,
    tags: { Name: `r${index}`, environment: 'production', owner: 'platform-team', 'managed-by': 'pulumi' },
    userData: '#!/bin/sh\nset -e\nyum install -y docker\nsystemctl enable --now docker\n'.repeat(6),
  };
  const outputs = { ...inputs, id: `i-${id.slice(40, 57)}`, arn: `arn:aws:ec2:eu-west-1:1234:instance/${id}` };
  return JSON.stringify({ urn, custom: true, id: outputs.id, type: 'aws:ec2/instance:Instance', inputs, outputs });
}

const head =
  '{"version":3,"deployment":{"manifest":{"time":"2026-01-01T00:00:00Z","magic":"","version":""},"resources":[';

/** The document of a state with these resources. */
export function documentOf(resources: readonly string[]): Buffer {
  return Buffer.from(`${head}${resources.join(',')}]}}`);
}

function wholeOf(step: number, resources: readonly string[]): Step {
  return {
    call: 'checkpointverbatim',
    body: compressed(verbatimBody(documentOf(resources), step)),
    resources: [...resources],
  };
}

function deltaOf(step: number, before: readonly string[], after: readonly string[]): Step {
  const deploymentDelta: object[] = [];
  let offset = head.length;
  before.forEach((text, index) => {
    const [start, end] = [{ offset }, { offset: offset + text.length }];
    if (text !== after[index]) deploymentDelta.push({ Span: { start, end }, NewText: after[index] });
    offset = end.offset + 1;
  });
  const checkpointHash = createHash('sha256').update(documentOf(after)).digest('hex');
  const body = { version: 3, checkpointHash, sequenceNumber: step, deploymentDelta };
  return { call: 'checkpointdelta', body: compressed(Buffer.from(JSON.stringify(body))), resources: [...after] };
}

/** Two entries for each resource. Positions refer to the base, so a resource that was updated before is replaced by operation. */
function entriesOf(step: number, indexes: readonly number[], resources: readonly string[]): Step {
  const entries = indexes.flatMap((index, at) => {
    const operationID = (step - 1) * indexes.length + at + 1;
    const state = JSON.parse(resources[index] as string) as { outputs?: object };
    const { outputs: _, ...resource } = state;
    const earlier = operationID - resources.length;
    const removed = earlier > 0 ? { removeOld: null, removeNew: earlier } : { removeOld: index, removeNew: null };
    const common = { version: 1, operationID };
    return [
      { ...common, sequenceID: operationID * 2 - 1, kind: 0, operation: { type: 'updating', resource } },
      { ...common, sequenceID: operationID * 2, kind: 1, state, ...removed },
    ];
  });
  return {
    call: 'journalentries',
    body: compressed(Buffer.from(JSON.stringify({ entries }))),
    resources: [...resources],
  };
}

function compressed(body: Buffer): Buffer {
  return gzipSync(body, { level: 1 });
}
