import { expect, test } from '@jest/globals';
import { cliConfig, cliEnvironment } from './cli-texts.ts';

const plain = { string: 'eu', secret: false, object: false };

test('what the CLI sends is stored once', () => {
  const config = {
    'aws:region': plain,
    'aws:config:zone': { string: 'a' },
    'web:list': { string: '["a"]', secret: false, object: true },
    'web:key': { string: 'v1:…', secret: true, object: false, later: 1 },
  };
  expect(cliConfig(config)).toBeNull();
  expect(cliConfig({})).toBeNull();
  expect(cliEnvironment({ 'git.head': 'abc', 'stack.environments': '[{"id":"a/b"}]' })).toBeNull();
});

test.each([
  ['a text', 'eu'],
  ['null', null],
  ['a list', ['eu']],
  ['no text', { secret: true }],
  ['a number as its text', { ...plain, string: 1 }],
  ['a text as its kind', { ...plain, secret: 'no' }],
  ['a member in another case', { ...plain, String: 1 }],
  ['a member with a long s', { ...plain, ſecret: 1 }],
  ['an object that is not JSON', { string: '{', secret: false, object: true }],
])('the CLI does not get a value that is %s', (_name, value) => {
  expect(cliConfig({ 'a:b': value, 'c:d': plain })).toBe(JSON.stringify({ 'c:d': plain }));
});

test.each(['region', 'a:b:c', 'a:config:b:c'])('nor the key %j', (key) => {
  expect(cliConfig({ [key]: plain })).toBe('{}');
});

test.each([
  ['n', 1],
  ['n', null],
  ['stack.environments', 'a'],
  ['stack.environments', '[{"id":""}]'],
])('nor %s %j in the environment', (name, value) => {
  expect(cliEnvironment({ a: 'b', [name]: value })).toBe('{"a":"b"}');
});

test('a name that JavaScript knows is an ordinary one', () => {
  const environment = JSON.parse('{"__proto__":"a","n":1}') as object;
  expect(cliEnvironment(environment)).toBe('{"__proto__":"a"}');
});
