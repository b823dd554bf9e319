import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { OrganizationApi } from './organization-api.ts';

/** Ends the first connection of each method without a response. */
const calls: string[] = [];
const server = createServer((request, response) => {
  const isFirst = !calls.includes(request.method as string);
  calls.push(request.method as string);
  if (isFirst) request.socket.destroy();
  else response.end('{}');
});
let api: OrganizationApi;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  api = new OrganizationApi({ origin, token: 'hf-x' }, 'acme');
});
afterAll(() => void server.close());

test('a call whose connection breaks is repeated, but not one that would create an object twice', async () => {
  await expect(api.get('teams')).resolves.toMatchObject({ json: {} });
  await expect(api.put('teams/a', {})).resolves.toMatchObject({ json: {} });
  await expect(api.post('grants', {})).rejects.toThrow('the change may have been made, so look before you repeat it');
  expect(calls).toEqual(['GET', 'GET', 'PUT', 'PUT', 'POST']);
});
