import type { IncomingMessage } from 'node:http';
import { expect, test } from '@jest/globals';
import { parseConfig } from '../../shared/platform/config/config.ts';
import { addressGroup, clientAddress } from './client-address.ts';

const { trustedProxies } = parseConfig({ HOLDFAST_TRUSTED_PROXIES: '10.0.0.0/8, 192.0.2.7, fd00::/8' });

const from = (remoteAddress: string, forwarded?: string | string[]): IncomingMessage =>
  ({
    socket: { remoteAddress },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  }) as unknown as IncomingMessage;

test.each([
  ['a client is its connection', '203.0.113.5', undefined, '203.0.113.5'],
  ['what a stranger says of itself does not count', '203.0.113.5', '198.51.100.1', '203.0.113.5'],
  ['a proxy says who it is', '10.1.2.3', '198.51.100.1', '198.51.100.1'],
  ['a proxy in the form of IPv6', '::ffff:10.1.2.3', '198.51.100.1', '198.51.100.1'],
  ['a single address that is trusted', '192.0.2.7', '198.51.100.1', '198.51.100.1'],
  ['what came to the proxy does not count', '10.1.2.3', '1.1.1.1, 198.51.100.1', '198.51.100.1'],
  ['two proxies in a row', '10.1.2.3', '1.1.1.1, 198.51.100.1, 192.0.2.7', '198.51.100.1'],
  ['proxies all the way', '10.1.2.3', '10.0.0.1, 10.0.0.2', '10.0.0.1'],
  ['a port', '10.1.2.3', '198.51.100.1:4711', '198.51.100.1'],
  ['IPv6 with a port', 'fd00::1', '[2001:db8::1]:4711', '2001:db8::1'],
  ['nonsense ends the way', '10.1.2.3', '198.51.100.1, unknown', '10.1.2.3'],
  ['a proxy that says nothing', '10.1.2.3', undefined, '10.1.2.3'],
  ['an empty header', '10.1.2.3', '', '10.1.2.3'],
])('%s', (_what, remote, forwarded, expected) => {
  expect(clientAddress(from(remote, forwarded), trustedProxies)).toBe(expected);
});

test('without trusted proxies only connections count', () => {
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
])('%s counts as %s', (address, group) => {
  expect(addressGroup(address)).toBe(group);
});
