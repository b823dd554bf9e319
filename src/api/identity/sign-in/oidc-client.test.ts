import { type AddressInfo, createServer } from 'node:net';
import { expect, test } from '@jest/globals';
import type { OidcConfig } from '../../../shared/platform/config/oidc.ts';
import { createLogger } from '../../../shared/platform/logger/logger.ts';
import { OidcClient } from './oidc-client.ts';

test.each([
  ['switches protocols', 'HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n', /switches protocols/],
  ['answers with a status that is no final one', 'HTTP/1.1 101 X\r\n\r\n', /status/],
  ['answers without a body', 'HTTP/1.1 204 X\r\n\r\n', /status code 204/],
  ['sends no HTTP', 'garbage\r\n\r\n', /Parse Error/],
])('a sign-in does not begin if the provider %s', async (_what, answer, reason) => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const config = { issuer, clientId: 'holdfast', clientSecret: null, groupsFile: null } as OidcConfig;
    const logger = createLogger({ level: 'silent' }, { write: () => {} });
    const client = new OidcClient(config, 'http://127.0.0.1/callback', logger);
    // Not only at the end of its time.
    const cause = { message: expect.stringMatching(reason) };
    await expect(client.begin()).rejects.toMatchObject({ name: 'UnavailableError', cause });
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
});
