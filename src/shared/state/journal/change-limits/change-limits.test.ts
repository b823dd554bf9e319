import { describe, expect, test } from '@jest/globals';
import { urnKey } from '../../deployments/live-urns.ts';
import type { BegunOperation } from './begin-entry.ts';
import { type ChangeLimits, changesAmong, judge, needsBase } from './change-limits.ts';

const limits: ChangeLimits = {
  stack: 'acme/web/prod',
  kind: 'destroy',
  commit: 'a'.repeat(40),
  changeLimit: { scope: 'project web', note: '', changes: 3, percent: null },
  needsJournal: false,
  protectedTypes: [],
};
const percent = (value: number): ChangeLimits => ({
  ...limits,
  changeLimit: { scope: 'project web', note: '', changes: null, percent: value },
});
const operation = (type: string, urn: string, more: Partial<BegunOperation> = {}): BegunOperation => ({
  ...{ sequenceId: 1, operationId: 1, type, urn, resourceType: 'aws:s3/bucket:Bucket', isManaged: true },
  ...more,
});
const change = [operation('deleting', 'a')];
const none = new Set<string>();

describe('judge', () => {
  test.each([
    ['the last one below the limit', limits, { before: 2, added: 1, resources: 9 }, true],
    ['the one above', limits, { before: 3, added: 1, resources: 9 }, false],
    ['several that pass it together', limits, { before: 2, added: 2, resources: 9 }, false],
    ['changes that were counted before', limits, { before: 3, added: 0, resources: 9 }, true],
    ['exactly the share', percent(10), { before: 1, added: 1, resources: 20 }, true],
    ['more than the share', percent(10), { before: 2, added: 1, resources: 20 }, false],
    ['the only resource, below its share', percent(50), { before: 0, added: 1, resources: 1 }, false],
    ['all resources', percent(100), { before: 0, added: 1, resources: 1 }, true],
    ['anything at all', percent(0), { before: 0, added: 1, resources: 1000 }, false],
    ['no rule', { ...limits, changeLimit: null }, { before: 99, added: 99, resources: 1 }, true],
  ] as const)('%s', (_, of, counts, isAllowed) => {
    expect(judge(of, change, { ...counts, previewed: none }) === null).toBe(isAllowed);
  });

  test('of protected types, none is deleted or replaced, whatever the count', () => {
    const of = (...types: string[]): ChangeLimits => ({
      ...limits,
      changeLimit: null,
      protectedTypes: [{ scope: 'project web', note: '', types }],
    });
    const counts = { before: 0, added: 1, previewed: none, resources: 9 };
    expect(judge(of('gcp:*', 'aws:s3/*'), change, counts)?.reason).toBe('protected-types');
    expect(judge(of('aws:rds/*'), change, counts)).toBeNull();
  });

  test('of what a preview announced, no more is deleted or replaced', () => {
    const of: ChangeLimits = {
      ...limits,
      changeLimit: null,
      preview: { scope: 'project web', note: '', updateId: 'b' },
    };
    const counts = { before: 0, added: 1, resources: 9 };
    expect(judge(of, change, { ...counts, previewed: none })?.reason).toBe('require-preview');
    expect(judge(of, change, { ...counts, previewed: new Set([urnKey('a')]) })).toBeNull();
  });

  test('states the rule, the count and how to continue', () => {
    expect(judge(limits, change, { before: 3, added: 2, previewed: none, resources: 9 })).toEqual({
      reason: 'change-limit',
      message:
        'An update of project web deletes or replaces at most 3; this one has begun 3 and is about to begin 2 more. ' +
        'No more operations begin; running ones are finished and saved. To go on, have the commit approved ' +
        `(holdfast admin approve acme/web/prod ${'a'.repeat(40)} --kind destroy --reason …, or over HTTP) and run it again`,
    });
  });
});

test('the base is read only where a rule depends on whether a creation is a replacement', () => {
  const creation = operation('creating', 'a');
  const isProtected = (...types: string[]) => ({
    ...limits,
    changeLimit: null,
    protectedTypes: [{ scope: 'x', note: '', types }],
  });
  expect(needsBase(limits, [creation])).toBe(true);
  expect(needsBase(limits, [operation('creating', 'a', { isManaged: false }), ...change])).toBe(false);
  expect(needsBase(isProtected('gcp:*', 'aws:s3/*'), [creation])).toBe(true);
  expect(needsBase(isProtected('aws:rds/*'), [creation])).toBe(false);
});

test('a creation is a change where the resource was there, a delete always', () => {
  const operations = [
    operation('creating', 'a'),
    operation('creating', 'b'),
    operation('deleting', 'b'),
    operation('importing', 'c'),
    operation('updating', 'd'),
    operation('deleting', 'e', { isManaged: false }),
  ];
  const live = new Set(['a', 'c', 'd', 'e'].map(urnKey));
  expect([...changesAmong(operations, live).keys()].sort()).toEqual(['a', 'b', 'c'].map(urnKey).sort());
  expect(changesAmong(operations, none).size).toBe(1);
});
