import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { kindNames } from './kind.ts';

/** Kinds without a mark of their own in the web UI, and why. */
const others: Readonly<Record<string, string>> = {
  UpdateRule: 'the list of rules says which of them are managed',
  RetentionRule: 'the list of rules says which of them are managed',
  Quota: 'the web UI shows limits and changes none',
  User: 'the web UI changes no other users',
};

test('the web UI marks managed objects of every kind that it can change', () => {
  const web = path.join(import.meta.dirname, '../../../web');
  const sources = globSync('**/*.tsx', { cwd: web }).map((file) => readFileSync(path.join(web, file), 'utf8'));
  const marked = sources.flatMap((text) =>
    [...text.matchAll(/<ManagedMark [^>]*?kind="(\w+)"/gs)].map(([, kind = '']) => kind),
  );
  const named = [...new Set(marked), ...Object.keys(others)];
  expect(named.toSorted()).toEqual(kindNames.toSorted());
});
