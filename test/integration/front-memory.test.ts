import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type ServerChild, startServerChild } from '../support/server-child.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';

const accept = 'application/vnd.pulumi+9';

let database: TestDatabase;
let server: ServerChild;
beforeAll(async () => {
  database = await createTestDatabase();
  server = await startServerChild(database);
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

/** A few KB of gzip that inflate to 64 MB of JSON with as many values as a control call may have. */
const bomb = gzipSync(Buffer.from(`[${`"${'a'.repeat(60)}",`.repeat(990_000)}1]`), { level: 9 });

test('bodies of unauthenticated callers use no memory, on any route', async () => {
  server.resetPeak();
  const targets = ['POST /x', 'POST /healthz', 'PUT /', 'POST /api/nothing', 'PATCH /api/user', 'POST /api/stacks/o/p'];
  const answers = await Promise.all(
    [...targets, ...targets].map(async (target) => {
      const [method = '', path] = target.split(' ');
      const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip', accept };
      const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, { method, headers, body: bomb });
      return { target, status: answer.status, code: ((await answer.json()) as { code: number }).code };
    }),
  );
  for (const { target, status, code } of answers) {
    expect({ target, status, code }).toEqual({
      target,
      status: target.endsWith('/o/p') ? 401 : 404,
      code: status,
    });
  }
  if (process.platform === 'linux') expect(server.peakMb()).toBeLessThan(300);
  else console.warn('The memory of the server is measured on Linux only');
  expect((await fetch(`http://127.0.0.1:${server.port}/healthz`)).status).toBe(200);
});
