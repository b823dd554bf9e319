import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { OrganizationApi } from './organization-api.ts';

/** What the server does with each call in turn; then it answers. A number is a status, `half` a body that breaks off. */
let faults: ('none' | 'half' | number)[] = [];
let text = '{}';
const calls: string[] = [];
const server = createServer((request, response) => {
  calls.push(request.method as string);
  const fault = faults.shift();
  if (fault === 'none') request.socket.destroy();
  else if (fault === 'half') {
    response.writeHead(200, { 'content-length': 100 }).write('{"id"', () => request.socket.destroy());
  } else response.writeHead(fault ?? 200, { 'retry-after': '0' }).end(text);
});
let origin: string;
let api: OrganizationApi;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  api = new OrganizationApi({ origin, token: 'hf-x' }, 'acme');
});
afterAll(() => void server.close());
beforeEach(() => {
  text = '{}';
  calls.length = 0;
});

test.each(['none', 'half', 502, 504] as const)(
  'a call without a whole response (%s) is repeated, but not one that would create an object twice',
  async (fault) => {
    faults = [fault];
    await expect(api.get('teams')).resolves.toMatchObject({ json: {} });
    faults = [fault];
    await expect(api.put('teams/a', {})).resolves.toMatchObject({ json: {} });
    faults = [fault];
    await expect(api.post('grants', {})).rejects.toThrow('the change may have been made, so look before you repeat it');
    expect(calls).toEqual(['GET', 'GET', 'PUT', 'PUT', 'POST']);
  },
);

test('a repeated deletion finds nothing, because the first one has deleted it', async () => {
  faults = ['none', 404];
  await expect(api.delete('teams/a')).resolves.toMatchObject({ json: null });
  faults = [503, 404];
  await expect(api.delete('teams/a')).rejects.toMatchObject({ status: 404, mayBeMade: false });
  faults = ['none', 412];
  await expect(api.patch('teams/a', {}, '"1"')).rejects.toMatchObject({ status: 412, mayBeMade: true });
});

test.each(['patch', 'put', 'delete'] as const)(
  'a %s without any response may have been made, even once no server has it',
  async (method) => {
    const own = createServer((request) => {
      request.socket.destroy();
      own.close();
    });
    await new Promise<void>((resolve) => own.listen(0, '127.0.0.1', resolve));
    const origin = `http://127.0.0.1:${(own.address() as AddressInfo).port}`;
    const lost = new OrganizationApi({ origin, token: 'hf-x' }, 'acme', undefined, { firstWaitMs: 1 });
    const call = method === 'delete' ? lost.delete('teams/a') : lost[method]('teams/a', {});
    await expect(call).rejects.toThrow('the change may have been made');
  },
);

test('a read without a response, and a change that no server had, tell nothing of a change', async () => {
  const soon = new OrganizationApi({ origin, token: 'hf-x' }, 'acme', undefined, { firstWaitMs: 1 });
  for (const [fault, call] of [
    [502, () => soon.get('teams')],
    [503, () => soon.patch('teams/a', {})],
  ] as const) {
    faults = Array.from({ length: 6 }, () => fault);
    await expect(call()).rejects.toThrow(new RegExp(`answers with status ${fault}$`));
  }
  faults = Array.from({ length: 6 }, () => 502);
  await expect(soon.patch('teams/a', {})).rejects.toThrow('the change may have been made');
});

test('roles that could not be read are read again for the next change', async () => {
  const soon = new OrganizationApi({ origin, token: 'hf-x' }, 'acme', undefined, { firstWaitMs: 1 });
  faults = Array.from({ length: 6 }, () => 503);
  await expect(soon.roleId('reader')).rejects.toThrow('answers with status 503');
  text = JSON.stringify({ roles: [{ id: '1', name: 'Reader' }] });
  await expect(soon.roleId('reader')).resolves.toBe('1');
  await expect(soon.roleId('READER')).resolves.toBe('1');
  expect(calls).toHaveLength(7);
});
