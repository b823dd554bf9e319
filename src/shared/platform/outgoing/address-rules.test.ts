import { describe, expect, test } from '@jest/globals';
import { type AllowList, isAllowedAddress, isAllowedUrl, isTrustedHost, parseAllowList } from './address-rules.ts';

function allow(text = ''): AllowList {
  const parsed = parseAllowList(text);
  if ('wrong' in parsed) throw new Error(parsed.wrong);
  return parsed.list;
}

describe('addresses that may be called', () => {
  test.each([
    ...['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c', '1.1.1.1'],
    ...['64:ff9b::8.8.8.8', '64:ff9b::5db8:d70e'],
  ])('%s is public', (address) => {
    expect(isAllowedAddress(address, allow())).toBe(true);
  });

  test.each([
    ...['127.0.0.1', '127.1.2.3', '0.0.0.0', '0.1.2.3', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
    ...['169.254.169.254', '100.64.0.1', '100.100.100.200', '168.63.129.16', '192.0.0.192', '198.18.0.1', '224.0.0.1'],
    ...['240.0.0.1', '255.255.255.255', '192.0.2.1', '192.88.99.1'],
    ...[
      '::',
      '::1',
      '::127.0.0.1',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '::ffff:93.184.215.14',
      'fe80::1',
      'fe80::1%eth0',
    ],
    ...[
      'fc00::1',
      'fd00:ec2::254',
      'fec0::1',
      'ff02::1',
      '64:ff9b::7f00:1',
      '64:ff9b::a00:1',
      '64:ff9b::a9fe:a9fe',
      '64:ff9b::168.63.129.16',
      '64:ff9b::1:0808:0808',
      '64:ff9b:1::1',
      '64:ff9b:1::808:808',
      '2002:7f00:1::',
      '2001::1',
    ],
    ...['2001:db8::1', '100::1', '4000::1'],
    ...['', 'localhost', '127.1', '2130706433', '0x7f000001', '0177.0.0.1', '127.0.0.1:80', '[::1]'],
  ])('%s is not', (address) => {
    expect(isAllowedAddress(address, allow())).toBe(false);
  });

  test('networks of the setting are allowed, and nothing next to them', () => {
    const list = allow('10.1.0.0/16, fd12::/16 192.168.7.7');
    for (const address of ['10.1.2.3', 'fd12::1', '192.168.7.7', '::ffff:10.1.2.3', '64:ff9b::10.1.2.3'])
      expect({ address, allowed: isAllowedAddress(address, list) }).toEqual({ address, allowed: true });
    for (const address of ['10.2.0.1', 'fd13::1', '192.168.7.8', '127.0.0.1', '::ffff:10.2.0.1', '64:ff9b::10.2.0.1'])
      expect({ address, allowed: isAllowedAddress(address, list) }).toEqual({ address, allowed: false });
  });
});

describe('URLs that may be called', () => {
  test.each(['http://example.com/', 'ftp://example.com/', 'file:///etc/passwd', 'https://me:pw@example.com/'])(
    '%s is refused',
    (url) => expect(isAllowedUrl(new URL(url), allow('10.0.0.0/8'))).toBe(false),
  );

  test('HTTP only to an origin of the setting', () => {
    const list = allow('http://ci.internal:8080');
    expect(isAllowedUrl(new URL('http://ci.internal:8080/x'), list)).toBe(true);
    expect(isAllowedUrl(new URL('http://ci.internal/x'), list)).toBe(false);
    expect(isTrustedHost(new URL('http://ci.internal:8080/x'), list)).toBe(true);
    expect(isTrustedHost(new URL('https://ci.internal:8080/x'), list)).toBe(false);
  });

  test('a host of the setting may have any address, others not', () => {
    const list = allow('GitLab.internal');
    expect(isTrustedHost(new URL('https://gitlab.internal/'), list)).toBe(true);
    expect(isTrustedHost(new URL('https://x.gitlab.internal/'), list)).toBe(false);
    expect(isTrustedHost(new URL('https://gitlab.internal.example.com/'), list)).toBe(false);
  });
});

test.each(['10.0.0.0/33', '999.1.1.1', 'http://x/path', 'http://u:p@x', '-x', 'a/b', '127.1'])(
  'the entry %s is not valid',
  (entry) => expect(parseAllowList(`example.com,${entry}`)).toEqual({ wrong: entry }),
);
