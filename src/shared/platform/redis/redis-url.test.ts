import { expect, test } from '@jest/globals';
import { ConfigError } from '../config/config.ts';
import { parseRedisUrl } from './redis-url.ts';

test('the URL of one server is left to ioredis', () => {
  expect(parseRedisUrl('redis://user:p%40w@host:6379/3?family=6')).toBeNull();
  expect(parseRedisUrl('rediss://host')).toBeNull();
});

test('sentinels, the name of the master and the database', () => {
  expect(
    parseRedisUrl('redis+sentinel://user:p%40w@a,[::1]:5/ma%20in/2?sentinelUsername=s&sentinelPassword=t%2Fu'),
  ).toEqual({
    layout: 'sentinel',
    hosts: [
      { host: 'a', port: 26_379 },
      { host: '::1', port: 5 },
    ],
    username: 'user',
    password: 'p@w',
    database: 2,
    tls: null,
    master: 'ma in',
    sentinelUsername: 's',
    sentinelPassword: 't/u',
    address: 'a,[::1]:5',
  });
});

test('the servers of a cluster, with TLS and a password only', () => {
  expect(parseRedisUrl('rediss+cluster://:word@a:1,b')).toMatchObject({
    layout: 'cluster',
    hosts: [
      { host: 'a', port: 1 },
      { host: 'b', port: 6379 },
    ],
    username: null,
    password: 'word',
    database: 0,
    tls: {},
  });
});

test.each([
  ['redis+sentinel://:secret@a:1,b:2', 'name of the master'],
  ['redis+sentinel://:secret@a:1/main/x', 'not a number'],
  ['redis+sentinel://:secret@a:99999/main', '"a:99999"'],
  ['redis+sentinel://:secret%@a/main', 'encodes nothing'],
  ['redis+cluster://:secret@a:1,/', '""'],
  ['redis+cluster://:secret@a:1/1', 'no databases'],
  ['redis+proxy://:secret@a', 'of the form'],
])('%s is rejected without revealing the password', (url, what) => {
  expect(() => parseRedisUrl(url)).toThrow(ConfigError);
  expect(() => parseRedisUrl(url)).toThrow(what);
  expect(() => parseRedisUrl(url)).not.toThrow('secret');
});
