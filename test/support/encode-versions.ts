import { createHash } from 'node:crypto';
import type { Queryable } from '../../src/shared/platform/db/sql.ts';
import { createChunkRepository } from '../../src/shared/state/checkpoints/chunks/chunk-repository.ts';
import { createVersionRepository } from '../../src/shared/state/version-repository.ts';
import { encodeVersions } from '../../src/workers/state/encode-versions.ts';
import { type EncodingShape, encodingShape, VersionEncoder } from '../../src/workers/state/version-encoder.ts';
import { query } from './database.ts';
import { deployment, gzipped, ok, type TestStack } from './state.ts';
import type { TestApp } from './test-app.ts';

/** Small states then show what large ones do. */
const smallShape: EncodingShape = {
  keyEvery: 8,
  groupSize: 4,
  sizes: { min: 512, target: 1024, max: 4096 },
  minStoredBytes: 1,
};

/** An encoder for small states; `db` instead of the app's own, for what it does with versions and chunks. */
export function createEncoder(app: TestApp, db: Queryable = app.context.db): VersionEncoder {
  const parts = { ...app.context, versions: createVersionRepository(db), chunks: createChunkRepository(db) };
  return new VersionEncoder(parts, { ...encodingShape, ...smallShape });
}

/** Makes the states of one stack due, or all. */
export async function makeDue(app: TestApp, stack?: TestStack): Promise<void> {
  await query(
    app,
    `update checkpoints c set encode_at = 'epoch' from stacks s join projects p on p.id = s.project_id
       join organizations o on o.id = p.organization_id
     where s.id = c.stack_id and c.codec <> 'chunks' and ($1::text is null or o.name = $1)`,
    [stack?.organization ?? null],
  );
}

/** Makes all states due first. Returns how many versions were encoded. */
export async function encodeAll(app: TestApp, encoder = createEncoder(app)): Promise<number> {
  await makeDue(app);
  return encodeVersions(app.context, { encoder });
}

/** The resources at these positions have other outputs. */
export function stateOf(count: number, changes: Readonly<Record<number, string>> = {}): string {
  const document = deployment(count);
  const resources = document.deployment['resources'] as { urn: string; outputs: object }[];
  for (const [at, resource] of resources.entries()) {
    const text = createHash('sha512')
      .update(`${resource.urn}${changes[at] ?? ''}`)
      .digest('base64');
    resource.outputs = { output: text };
  }
  return JSON.stringify(document);
}

export async function importVersion(app: TestApp, stack: TestStack, text: string): Promise<void> {
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(text) }));
}

/** Each version has two other resources than the first. Returns their texts. */
export async function importVersions(app: TestApp, stack: TestStack, count: number): Promise<string[]> {
  const texts: string[] = [];
  for (let version = 1; version <= count; version++) {
    texts.push(stateOf(60, { [version]: `v${version}`, [version + 20]: `w${version}` }));
    await importVersion(app, stack, texts.at(-1) as string);
  }
  return texts;
}

export async function exportVersion(app: TestApp, stack: TestStack, version: number): Promise<string> {
  return (await ok(app.call('GET', `${stack.path}/export/${version}`, { auth: stack.auth }))).text;
}

export async function exportVersions(app: TestApp, stack: TestStack, count: number): Promise<string[]> {
  return Promise.all(Array.from({ length: count }, (_, at) => exportVersion(app, stack, at + 1)));
}

export interface VersionRecord {
  readonly version: number;
  readonly id: string;
  readonly codec: string;
  readonly stored_bytes: string;
  readonly damaged_at: Date | null;
}

/** The checkpoints of a stack's versions, in order. */
export function versionsOf(app: TestApp, stack: TestStack): Promise<VersionRecord[]> {
  return query(
    app,
    `select u.stack_version as version, c.id, c.codec, c.stored_bytes, c.damaged_at
     from updates u join checkpoints c on c.id = u.checkpoint_id join stacks s on s.id = u.stack_id
       join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
     where o.name = $1 order by u.stack_version`,
    [stack.organization],
  );
}
