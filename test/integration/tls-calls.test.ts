import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { runHoldfast } from '../support/admin.ts';
import { createTestAuthority, type TestAuthority } from '../support/certificates.ts';

// Commands that call the API, and a server with a certificate of a private authority.
let authority: TestAuthority;
let server: Server;
let url: string;
let connections = 0;
beforeAll(async () => {
  authority = await createTestAuthority();
  const { cert, key } = await authority.issue('server', 'DNS:localhost,IP:127.0.0.1');
  server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (request, response) => {
    response.writeHead(request.url?.startsWith('/trpc') ? 403 : 200).end('{}');
  });
  server.on('connection', () => connections++);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `https://localhost:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server?.close();
  await authority?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  connections = 0;
});

const run = (words: readonly string[], settings: Readonly<Record<string, string>> = {}) =>
  runHoldfast({ PATH: process.env['PATH'], HOLDFAST_URL: url, PULUMI_ACCESS_TOKEN: 'hf-x', ...settings }, ...words);

test.each([
  [['wait', 'acme/web/prod'], 1, { code: 0, stderr: '' }],
  // Its calls run at once.
  [['top', '--json'], 4, { code: 1, stderr: expect.stringContaining('Only site admins') }],
])(
  '%j trusts the authority in HOLDFAST_CA_FILE, and without it fails at once and names the setting',
  async (words, calls, trusted) => {
    const { code, stderr } = await run(words);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^holdfast: .*certificate is not trusted.*HOLDFAST_CA_FILE/),
    ]);
    expect(connections).toBe(calls);
    expect(await run(words, { HOLDFAST_CA_FILE: authority.caFile })).toMatchObject(trusted);
  },
);
