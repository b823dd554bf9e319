import type { IncomingMessage } from 'node:http';
import { expect, test } from '@jest/globals';
import { parseConfig } from '../../../shared/platform/config/config.ts';
import { addressGroup, clientAddress } from './client-address.ts';

const { trustedProxies } = parseConfig({ HOLDFAST_TRUSTED_PROXIES: '10.0.0.0/8, 192.0.2.7, fd00::/8' });

const from = (remoteAddress: string, forwarded?: string | string[]): IncomingMessage =>
  ({
    socket: { remoteAddress },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  }) as unknown as IncomingMessage;

test.each([
  ['direct connection', '203.0.113.5', undefined, '203.0.113.5'],
  ['header from an untrusted client is ignored', '203.0.113.5', '198.51.100.1', '203.0.113.5'],
  ['header from a trusted proxy is used', '10.1.2.3', '198.51.100.1', '198.51.100.1'],
  ['proxy as an IPv4-mapped IPv6 address', '::ffff:10.1.2.3', '198.51.100.1', '198.51.100.1'],
  ['proxy trusted by its single address', '192.0.2.7', '198.51.100.1', '198.51.100.1'],
  ['entries that the client sent to the proxy are ignored', '10.1.2.3', '1.1.1.1, 198.51.100.1', '198.51.100.1'],
  ['chain of two trusted proxies', '10.1.2.3', '1.1.1.1, 198.51.100.1, 192.0.2.7', '198.51.100.1'],
  ['chain of trusted proxies only', '10.1.2.3', '10.0.0.1, 10.0.0.2', '10.0.0.1'],
  ['IPv4 address with a port', '10.1.2.3', '198.51.100.1:4711', '198.51.100.1'],
  ['IPv6 address with a port', 'fd00::1', '[2001:db8::1]:4711', '2001:db8::1'],
  ['invalid entry ends the chain', '10.1.2.3', '198.51.100.1, unknown', '10.1.2.3'],
  ['proxy without the header', '10.1.2.3', undefined, '10.1.2.3'],
  ['empty header', '10.1.2.3', '', '10.1.2.3'],
])('%s', (_title, remote, forwarded, expected) => {
  expect(clientAddress(from(remote, forwarded), trustedProxies)).toBe(expected);
});

test('ignores the header when no proxies are trusted', () => {
  expect(clientAddress(from('127.0.0.1', '198.51.100.1'), parseConfig({}).trustedProxies)).toBe('127.0.0.1');
});

test.each([
  ['203.0.113.5', '203.0.113.5'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:0db8:0:0:ffff::', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
])('%s belongs to group %s', (address, group) => {
  expect(addressGroup(address)).toBe(group);
});
