import { expect, test } from '@jest/globals';
import { parseConfig } from './config.ts';
import { isLoopback, listExposures, listManagementExposures } from './exposure.ts';

const tls = { HOLDFAST_TLS_CERT_FILE: '/tls.crt', HOLDFAST_TLS_KEY_FILE: '/tls.key' };
const all = { HOLDFAST_LISTEN: '0.0.0.0:9090' };
const ownAddresses = ['127.0.0.1', '10.1.2.3', 'fe80::1'];

function exposed(settings: Record<string, string>, addresses = ownAddresses): string[] {
  return listExposures(parseConfig(settings), addresses).map((line) => line.split(':')[0] as string);
}

test.each([
  'http://localhost:9090',
  'http://127.0.0.1:9090',
  'http://[::1]:9090',
  'http://10.1.2.3',
  'http://172.31.0.1:9090',
  'http://192.168.1.5',
  'http://[fd00::5]:9090',
  'http://holdfast:9090',
  'http://holdfast.internal',
  'https://state.example.com',
  'https://203.0.113.5',
])('the public URL %s exposes nothing', (url) => expect(exposed({ HOLDFAST_PUBLIC_URL: url })).toEqual([]));

test.each(['http://state.example.com', 'http://203.0.113.5:9090', 'http://172.32.0.1', 'http://[2001:db8::1]:9090'])(
  'the public URL %s exposes tokens',
  (url) => expect(exposed({ HOLDFAST_PUBLIC_URL: url })).toEqual(['HOLDFAST_PUBLIC_URL']),
);

test.each([{}, { HOLDFAST_LISTEN: '[::1]:9090' }, { HOLDFAST_LISTEN: 'localhost:9090' }, { ...all, ...tls }])(
  '%j exposes nothing',
  (settings) => expect(exposed(settings)).toEqual([]),
);

test('a listener of a trusted proxy exposes nothing', () => {
  expect(exposed({ ...all, HOLDFAST_TRUSTED_PROXIES: '10.0.0.7' })).toEqual([]);
});

test.each([
  ['127.0.0.1,::1', all, ['HOLDFAST_LISTEN']],
  ['127.0.0.0/8', { HOLDFAST_LISTEN: '10.1.2.3:443' }, ['HOLDFAST_LISTEN']],
  ['127.0.0.1,10.0.0.7', all, []],
  ['0.0.0.0/0', all, []],
  ['127.0.0.1,::1', {}, []],
  ['127.0.0.1', { ...all, ...tls }, []],
])('a proxy at %s needs a listener at %j that exposes %j', (proxies, settings, found) =>
  expect(exposed({ ...settings, HOLDFAST_TRUSTED_PROXIES: proxies })).toEqual(found),
);

test.each(['0.0.0.0:9090', '[::]:9090', '10.1.2.3:9090', 'holdfast.internal:9090'])(
  'plain HTTP at %s, without a proxy, exposes tokens',
  (address) => expect(exposed({ HOLDFAST_LISTEN: address })).toEqual(['HOLDFAST_LISTEN']),
);

test.each(['0.0.0.0:9092', '10.1.2.3:9092'])('a management port at %s is for a private network', (address) =>
  expect(exposed({ HOLDFAST_MANAGEMENT_LISTEN: address })).toEqual([]),
);

test.each([
  ['203.0.113.5:9092', ownAddresses],
  ['0.0.0.0:9092', ['127.0.0.1', '203.0.113.5']],
  ['[::]:9092', ['::1', '2001:db8::1']],
])('a management port at %s is open to everyone', (address, addresses) =>
  expect(exposed({ HOLDFAST_MANAGEMENT_LISTEN: address }, addresses)).toEqual(['HOLDFAST_MANAGEMENT_LISTEN']),
);

test('the management endpoints on the port of the service are as open as it is', () => {
  const settings = { ...all, ...tls, HOLDFAST_MANAGEMENT_LISTEN: 'same' };
  expect(exposed(settings, ['203.0.113.5'])).toEqual(['HOLDFAST_MANAGEMENT_LISTEN']);
});

test('an exposure names the address that is reached', () => {
  const listen = { host: '0.0.0.0', port: 9092 };
  expect(listManagementExposures(listen, ['10.0.0.1', '198.51.100.7'])).toEqual([
    expect.stringMatching(/^HOLDFAST_MANAGEMENT_LISTEN: .* 198\.51\.100\.7, /),
  ]);
});

test.each([
  ['127.8.8.8', true],
  ['[::1]', true],
  ['localhost', true],
  ['db.localhost', true],
  ['0.0.0.0', false],
  ['10.0.0.1', false],
  ['localhost.example.com', false],
])('isLoopback says of %s: %s', (host, is) => expect(isLoopback(host)).toBe(is));
