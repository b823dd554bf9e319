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

const web = path.join(import.meta.dirname, '../../../web');
const sources = globSync('**/*.tsx', { cwd: web }).map((file) => readFileSync(path.join(web, file), 'utf8'));

/** How pages change objects that exist, by kind. */
const changes: Readonly<Record<string, RegExp>> = {
  Organization: /trpc\.access\.changePolicy\./,
  Member: /trpc\.members\.(setRole|remove)\./,
  Role: /trpc\.roles\.(edit|delete)\./,
  Team: /trpc\.teams\.(edit|delete|setMember|removeMember)\./,
  Issuer: /trpc\.issuers\.(edit|delete|setPolicies)\./,
  Grant: /trpc\.grants\.take\./,
  UpdateRule: /trpc\.rules\.(change|remove)\./,
  RetentionRule: /trpc\.rules\.(change|remove)\./,
  PolicyGroup: /trpc\.policies\.(changeGroup|removeGroup)\./,
  Webhook: /[^.]calls\.(change|remove)\.mutation/,
  StackWebhook: /[^.]calls\.(change|remove)\.mutation/,
};

test.each(kindNames.filter((kind) => !['Quota', 'User'].includes(kind)))(
  'the web UI asks before it changes a managed %s',
  (kind) => {
    const changing = sources.filter((text) => changes[kind]?.test(text));
    expect(changing).not.toEqual([]);
    // As often as it asks at all, unless the dialog is for a new object.
    for (const text of changing) {
      const confirmed = [...text.matchAll(/<ManagedDialog\s/g)].length;
      const mutations = [...text.matchAll(new RegExp(changes[kind] as RegExp, 'g'))].length;
      expect(confirmed).toBeGreaterThanOrEqual(mutations);
    }
  },
);

test('the web UI asks before a new rule replaces a managed one', () => {
  const setting = sources.filter((text) => /trpc\.rules\.set\./.test(text));
  expect(setting).not.toEqual([]);
  for (const text of setting) {
    expect(text).toMatch(/<ManagedDialog\s+managed=\{\{[^}]*\breplaces \}\}/);
    expect(text.match(/trpc\.rules\.set\./g)).toHaveLength(1);
  }
});

test('the web UI marks managed objects of every kind that it can change', () => {
  const marked = sources.flatMap((text) =>
    [...text.matchAll(/<ManagedMark [^>]*?kind="(\w+)"/gs)].map(([, kind = '']) => kind),
  );
  const named = [...new Set(marked), ...Object.keys(others)];
  expect(named.toSorted()).toEqual(kindNames.toSorted());
});
