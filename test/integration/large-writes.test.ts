import { createHash } from 'node:crypto';
import { get, type IncomingHttpHeaders } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { deploymentOf } from '../../bench/support/raw-client.ts';
import { stateOf } from '../../bench/support/state-document.ts';
import { blobRowKeys, storedKeys } from '../support/blob-rows.ts';
import { query } from '../support/database.ts';
import { exportState } from '../support/stack-state.ts';
import { createStack, gzipped, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { contractAccept, testApp } from '../support/test-app.ts';

// Documents above 1 MiB are stored while they are read. What is wrong with them is known only at their end.

const app = testApp();
const text = stateOf(1_300_000).toString();
const other = deploymentOf(1_200_000).toString();

let stack: TestStack;
let update: RunningUpdate;
let objects: readonly string[];
beforeAll(async () => {
  stack = await createStack(app);
  update = await startUpdate(app, stack);
  await ok(verbatim(text, 5));
  objects = await storedKeys(app);
});

const send = (kind: string, body: string | object, accept?: string) =>
  app.call('PATCH', `${update.path}/${kind}`, { auth: update.lease, ...(accept && { accept }), ...gzipped(body) });
const verbatim = (document: string, sequenceNumber: number | string) =>
  send('checkpointverbatim', `{"version":3,"untypedDeployment":${document},"sequenceNumber":${sequenceNumber}}`);
const deltaOf = (newText: string, result: string, sequenceNumber = 6) =>
  send('checkpointdelta', {
    version: 3,
    sequenceNumber,
    checkpointHash: createHash('sha256').update(result).digest('hex'),
    deploymentDelta: [{ Span: { start: { offset: text.length }, end: { offset: text.length } }, NewText: newText }],
  });
const importOf = (body: string) => app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(body) });
const exported = async () => (await ok(exportState(app, stack))).text;

describe('a large body that is rejected at its end', () => {
  const unfinished = other.slice(0, -2);
  test.each<[string, () => ReturnType<typeof send>, number, string]>([
    ['cut off', () => verbatim(unfinished, 6), 400, 'Malformed JSON'],
    ['followed by more', () => send('checkpoint', `${other}x`), 400, 'Malformed JSON: Text after'],
    ['of a version from the future', () => verbatim(other.replace('"version":3', '"version":9'), 6), 400, 'too new'],
    ['without a valid number', () => verbatim(other, '6.5'), 400, 'sequenceNumber'],
    [
      'a checkpoint without a deployment',
      () => send('checkpoint', other.replace('"deployment"', '"d"')),
      400,
      'missing',
    ],
    [
      'with a list for its deployment',
      () => verbatim(`{"version":3,"deployment":[${other}]}`, 6),
      400,
      'not an object',
    ],
    ['a delta with another hash', () => deltaOf(' ', text), 400, 'given hash'],
    ['a delta that makes it malformed', () => deltaOf('}', `${text}}`), 400, 'Malformed JSON'],
  ])('leaves no object and no state: %s', async (_name, call, status, message) => {
    const response = await call();
    expect([response.status, response.json.message]).toEqual([status, expect.stringContaining(message)]);
    expect(await storedKeys(app)).toEqual(objects);
    expect(await exported()).toBe(text);
  });

  test('leaves at most a row, which the sweep takes', async () => {
    const rows = await blobRowKeys(app);
    expect(rows).toEqual(expect.arrayContaining([...objects]));
    const missed = await query(
      app,
      `select key from blobs b
       where unreferenced_since is null and not exists (select from checkpoints c where c.blob_key = b.key)`,
    );
    expect(missed).toEqual([]);
  });
});

describe('a large body that is sent again', () => {
  test.each([5, 3])('is accepted and stored no second time: number %d', async (sequenceNumber) => {
    expect((await verbatim(other, sequenceNumber)).status).toBe(204);
    expect(await storedKeys(app)).toEqual(objects);
    expect(await exported()).toBe(text);
  });
});

describe('large documents', () => {
  const inner = other.slice(other.indexOf('"deployment":') + '"deployment":'.length, -1);

  test.each<[string, () => ReturnType<typeof send>, string]>([
    ['whole, in the order of the CLI', () => send('checkpoint', `{"isInvalid":false,${other.slice(1)}`), other],
    [
      'with features',
      () => send('checkpoint', `{"version":4,"features":["a"], "deployment": ${inner} }`),
      `{"version":4,"features":["a"],"deployment":${inner}}`,
    ],
    ['with the version last', () => send('checkpoint', `{"deployment":${inner},"version":3}`), other],
    [
      'with a member twice',
      () => send('checkpoint', `{"version":3,"deployment":{"resources":null},"deployment":${inner}}`),
      other,
    ],
    ['verbatim', () => verbatim(other, 7), other],
    [
      'verbatim, with the number first',
      () => send('checkpointverbatim', `{"sequenceNumber":8,"version":3,"untypedDeployment": ${other} }`),
      other,
    ],
    [
      'of the contract',
      () => send('checkpointverbatim', `{"deployment": ${inner} ,"sequenceNumber":9,"version":3}`, contractAccept),
      other,
    ],
  ])('are exported byte for byte: %s', async (_name, call, document) => {
    expect((await call()).status).toBe(204);
    expect((await exported()) === document).toBe(true);
  });

  test('are changed by a delta in one pass over their base', async () => {
    const own = await createStack(app);
    update = await startUpdate(app, own);
    await ok(verbatim(text, 1));
    expect((await deltaOf('  ', `${text}  `, 2)).status).toBe(204);
    expect((await ok(exportState(app, own))).text === `${text}  `).toBe(true);
  });

  test('are imported without the space around them, and rejected whole', async () => {
    stack = await createStack(app);
    await ok(importOf(` \n${text}\n `));
    expect((await exported()) === text).toBe(true);
    const before = await storedKeys(app);
    const response = await importOf(`${other}{`);
    expect([response.status, response.json.message]).toEqual([400, expect.stringContaining('Malformed JSON')]);
    expect(await storedKeys(app)).toEqual(before);
    expect((await exported()) === text).toBe(true);
  });
});

describe('a large export', () => {
  interface Answer {
    readonly headers: IncomingHttpHeaders;
    readonly bytes: Buffer;
  }
  const exportOf = (url: string, own: TestStack, headers: Record<string, string>, method = 'GET'): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const all = { authorization: own.auth, accept: 'application/vnd.pulumi+9', ...headers };
      const call = get(`${url}${own.path}/export`, { headers: all, method, agent: false }, (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.on('error', reject);
        response.on('end', () => resolve({ headers: response.headers, bytes: Buffer.concat(parts) }));
      });
      call.on('error', reject);
    });

  test('is compressed if the client asks for gzip, whatever is in it, and otherwise has its length', async () => {
    const url = await app.app.listen({ host: '127.0.0.1', port: 0 });
    for (const document of [text, other]) {
      stack = await createStack(app);
      await ok(importOf(document));
      for (const accepted of ['gzip', 'deflate, GZIP', 'gzip;q=0.5', '*']) {
        const { headers, bytes } = await exportOf(url, stack, { 'accept-encoding': accepted });
        expect([headers['content-encoding'], headers['content-length'], headers['vary']]).toEqual([
          'gzip',
          undefined,
          'accept-encoding',
        ]);
        expect(gunzipSync(bytes).equals(Buffer.from(document))).toBe(true);
      }
      for (const headers of [
        {},
        { 'accept-encoding': 'identity' },
        { 'accept-encoding': 'gzip', 'x-no-compression': '1' },
      ]) {
        const answer = await exportOf(url, stack, headers);
        expect([answer.headers['content-encoding'], answer.headers['content-length']]).toEqual([
          undefined,
          String(document.length),
        ]);
        expect(answer.bytes.equals(Buffer.from(document))).toBe(true);
      }
      const { headers, bytes } = await exportOf(url, stack, { 'accept-encoding': 'gzip' }, 'HEAD');
      expect([headers['content-encoding'], bytes.length]).toEqual([undefined, 0]);
    }
  });
});
