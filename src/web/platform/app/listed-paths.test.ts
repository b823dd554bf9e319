import { expect, test } from '@jest/globals';
import { listPaths } from './listed-paths.ts';

const definition = (image: string): string =>
  JSON.stringify([{ name: 'web', image, ports: [{ containerPort: 8080 }] }]);

test('JSON documents in strings are compared inside', () => {
  const path = 'inputs.containerDefinitions';
  expect(listPaths([{ path, before: definition('web:1'), after: definition('web:2') }])).toEqual([
    { path: 'inputs.containerDefinitions[0].image', before: 'web:1', after: 'web:2' },
  ]);
  const added = listPaths([{ path: 'inputs.policy', before: '{"a":1}', after: '{"a":1,"b":2}' }]);
  expect(added).toEqual([{ path: 'inputs.policy.b', before: null, after: 2 }]);
});

test('strings that are not documents, or differ only in whitespace, are shown whole', () => {
  const whole = [
    { path: 'inputs.script', before: '[ -f a ] && run', after: '[ -f b ] && run' },
    { path: 'inputs.policy', before: '{"a":1}', after: '{ "a": 1 }' },
    { path: 'inputs.size', before: 3, after: null },
    { path: 'inputs.added', before: null, after: '{"a":1}' },
  ];
  expect(listPaths(whole)).toEqual(whole);
});

test('outputs that repeat the change of their input are shown with it', () => {
  const paths = [
    { path: 'inputs.count', before: 3, after: 6 },
    { path: 'outputs.count', before: 3, after: 6 },
    { path: 'inputs.tags', before: null, after: { a: '1' } },
    { path: 'outputs.tags', before: { b: '2' }, after: { a: '1', b: '2' } },
    { path: 'outputs.revision', before: 1, after: 2 },
  ];
  expect(listPaths(paths).map(({ isAlsoOutput, path }) => [path, isAlsoOutput])).toEqual([
    ['inputs.count', true],
    ['inputs.tags', undefined],
    ['outputs.tags', undefined],
    ['outputs.revision', undefined],
  ]);
});

test('providers have their package and name', () => {
  const provider = (version: string): string =>
    `urn:pulumi:prod::web::pulumi:providers:aws::default_${version}::0a1b2c3d`;
  expect(listPaths([{ path: 'provider', before: provider('6_0_0'), after: provider('7_0_0') }])).toEqual([
    { path: 'provider', before: 'aws default_6_0_0', after: 'aws default_7_0_0' },
  ]);
});
