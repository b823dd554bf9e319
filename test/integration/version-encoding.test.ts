import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { encodeAll } from '../support/encode-versions.ts';
import { createStack, deployment, gzipped, ok, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ settings: { HOLDFAST_ENCODE_BYTES_PER_SECOND: '1000000000' } });
});
afterAll(() => app[Symbol.asyncDispose]());

/** A state in which the resources at these positions have other values. */
function stateOf(count: number, changes: Readonly<Record<number, string>>): string {
  const document = deployment(count);
  const resources = document.deployment['resources'] as { urn: string; outputs: object }[];
  for (const [at, resource] of resources.entries()) {
    const text = createHash('sha512').update(`${resource.urn}${changes[at] ?? ''}`).digest('base64');
    resource.outputs = { output: text };
  }
  return JSON.stringify(document);
}

async function importVersion(stack: TestStack, text: string): Promise<void> {
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(text) }));
}

async function exportVersion(stack: TestStack, version: number): Promise<string> {
  return (await ok(app.call('GET', `${stack.path}/export/${version}`, { auth: stack.auth }))).text;
}

test('older versions take little space and are exported byte for byte', async () => {
  const stack = await createStack(app);
  const texts: string[] = [];
  for (let version = 1; version <= 20; version++) {
    texts.push(stateOf(60, { [version]: `v${version}`, [version + 20]: `w${version}` }));
    await importVersion(stack, texts.at(-1) as string);
  }
  const before = await query(app, 'select sum(stored_bytes)::integer as sum from checkpoints');
  expect(await encodeAll(app)).toBe(19);
  const after = await query(app, 'select sum(stored_bytes)::integer as sum from checkpoints');
  console.log(before, after, await query(app, 'select depth, count(*) from version_pieces group by 1 order by 1'));
  for (const [at, text] of texts.entries()) expect(await exportVersion(stack, at + 1)).toBe(text);
});
