import { describe, expect, test } from '@jest/globals';
import { urnKey } from '../../deployments/live-urns.ts';
import type { BegunOperation } from './begin-entry.ts';
import { type ChangeLimits, changesAmong, judge, needsBase, protectionOf } from './change-limits.ts';

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
const unprotected = { previewed: none, protection: new Map() };

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
    expect(judge(of, change, { ...counts, ...unprotected }) === null).toBe(isAllowed);
  });

  describe('of protected types', () => {
    const of = (...types: string[]): ChangeLimits => ({
      ...limits,
      changeLimit: null,
      protectedTypes: [{ scope: 'project web', note: '', types }],
    });
    const judged = async (rules: ChangeLimits, begins: readonly BegunOperation[]) => {
      const protection = await protectionOf(rules, begins);
      return judge(rules, begins, { before: 0, added: 1, previewed: none, protection, resources: 9 });
    };

    test('none is deleted or replaced, whatever the count', async () => {
      expect((await judged(of('gcp:*', 'aws:s3/*'), change))?.reason).toBe('protected-types');
      expect(await judged(of('aws:rds/*'), change)).toBeNull();
    });

    test('a type that is too long to compare is one, and is quoted shortened', async () => {
      const [began, patterns] = [process.cpuUsage(), Array.from({ length: 100 }, () => `*${'a'.repeat(198)}b`)];
      const stop = await judged(of(...patterns), [
        operation('deleting', `a::${'b'.repeat(1_000_000)}`, { resourceType: 'a'.repeat(1_000_000) }),
      ]);
      expect(process.cpuUsage(began).user).toBeLessThan(1_000_000);
      expect(stop?.message).toContain(`this one deletes ${'a'.repeat(200)}… "${'b'.repeat(200)}…".`);
    });

    test('a quoted type can be stored', async () => {
      const stop = await judged(of('*'), [operation('deleting', 'a::\ud800', { resourceType: 'x\0:\ud800' })]);
      expect(stop?.message).toContain('deletes x:\ufffd "\ufffd".');
    });

    test('a batch of many types leaves time to others', async () => {
      const patterns = Array.from({ length: 100 }, () => `*${'a'.repeat(197)}b*`);
      const begins = Array.from({ length: 501 }, (_, index) =>
        operation('deleting', 'a', { resourceType: 'a'.repeat(490) + index }),
      );
      let ticks = 0;
      const timer = setInterval(() => ticks++, 1);
      try {
        const protection = await protectionOf(of(...patterns), begins);
        // Beyond the limit.
        expect([...protection.keys()]).toEqual([begins[500]?.resourceType]);
      } finally {
        clearInterval(timer);
      }
      expect(ticks).toBeGreaterThan(5);
    });
  });

  test('of what a preview announced, no more is deleted or replaced', () => {
    const of: ChangeLimits = {
      ...limits,
      changeLimit: null,
      preview: { scope: 'project web', note: '', updateId: 'b' },
    };
    const counts = { before: 0, added: 1, resources: 9 };
    expect(judge(of, change, { ...counts, ...unprotected })?.reason).toBe('require-preview');
    expect(judge(of, change, { ...counts, previewed: new Set([urnKey('a')]), protection: new Map() })).toBeNull();
  });

  test('states the rule, the count and how to continue', () => {
    expect(judge(limits, change, { before: 3, added: 2, ...unprotected, resources: 9 })).toEqual({
      reason: 'change-limit',
      message:
        'An update of project web deletes or replaces at most 3; this one has begun 3 and is about to begin 2 more. ' +
        'No more operations begin; running ones are finished and saved. To continue, have the commit approved ' +
        `(holdfast admin approve acme/web/prod ${'a'.repeat(40)} --kind destroy --reason …, or over HTTP) and run it again`,
    });
  });
});

test('the base is read only where a rule depends on whether a creation is a replacement', async () => {
  const creation = operation('creating', 'a');
  const isProtected = (...types: string[]) => ({
    ...limits,
    changeLimit: null,
    protectedTypes: [{ scope: 'x', note: '', types }],
  });
  const isNeeded = async (of: ChangeLimits, begins: readonly BegunOperation[]) =>
    needsBase(of, begins, await protectionOf(of, begins));
  expect(await isNeeded(limits, [creation])).toBe(true);
  expect(await isNeeded(limits, [operation('creating', 'a', { isManaged: false }), ...change])).toBe(false);
  expect(await isNeeded(isProtected('gcp:*', 'aws:s3/*'), [creation])).toBe(true);
  expect(await isNeeded(isProtected('aws:rds/*'), [creation])).toBe(false);
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
