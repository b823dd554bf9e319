import { expect, test } from '@jest/globals';
import type { VersionDifference } from '../platform/app/procedure-types.ts';
import { describeProviderChange, providerChanges } from './provider-changes.ts';

type Change = VersionDifference['change'];

const differing = (name: string, change: Change, before: string | null, after: string | null): VersionDifference => ({
  ...{ urn: name, type: `pulumi:providers:${name}`, name, change, pathCount: 1 },
  paths: [{ path: 'inputs.version', before, after }],
});

test('a provider that replaces another one of its package has a new version', () => {
  expect(
    providerChanges([
      differing('aws', 'created', null, '6.2.0'),
      differing('random', 'created', null, '4.0.0'),
      differing('aws', 'deleted', '6.1.0', null),
      differing('gcp', 'updated', '7.0.0', '8.0.0'),
      // Of which only the region differs.
      { ...differing('azure', 'updated', null, null), paths: [] },
      // Of one version each, moved to another name.
      differing('docker', 'created', null, '4.5.0'),
      differing('docker', 'deleted', '4.5.0', null),
    ]),
  ).toEqual([
    { name: 'aws', before: ['6.1.0'], after: ['6.2.0'] },
    { name: 'gcp', before: ['7.0.0'], after: ['8.0.0'] },
    { name: 'random', before: [], after: ['4.0.0'] },
  ]);
});

test('a provider beside others of its version is added or removed: its version is not new', () => {
  const lines = (...differences: VersionDifference[]) => providerChanges(differences).map(describeProviderChange);
  expect(lines(differing('aws', 'created', null, '6.1.0'))).toEqual(['Provider resource added: aws 6.1.0']);
  expect(lines(differing('aws', 'deleted', '6.1.0', null))).toEqual(['Provider resource removed: aws 6.1.0']);
  expect(lines(differing('aws', 'updated', '6.1.0', '6.2.0'))).toEqual(['Provider aws 6.1.0 → 6.2.0']);
});
