import { Readable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import { heapGrowth } from '../../../test/support/heap.ts';
import { slicesOf } from '../../../test/support/slices-of.ts';
import { urnKey } from '../state/deployments/live-urns.ts';
import { type Dependencies, DependencyScanner } from './dependency-scanner.ts';
import { RetrySigns } from './retry-signs.ts';
import { statisticsOf } from './step-statistics.ts';
import { type Step, StepTimes } from './step-times.ts';
import { countsOf, describeUnusual, findUnusual } from './unusual-updates.ts';

const mib = 1024 * 1024;
const step = (urn: string, startedAt: number, endedAt: number, operation = 'create'): Step => ({
  ...{ urn, type: 't', operation, startedAt, endedAt, isFailed: false },
});

/** As in `{ app: ['db'] }`: the app depends on the database. */
function dependencies(needs: Readonly<Record<string, readonly string[]>>): Dependencies {
  const before = new Map<string, Set<string>>();
  const after = new Map<string, Set<string>>();
  for (const [urn, others] of Object.entries(needs))
    for (const other of others) {
      before.set(urnKey(urn), new Set([...(before.get(urnKey(urn)) ?? []), urnKey(other)]));
      after.set(urnKey(other), new Set([...(after.get(urnKey(other)) ?? []), urnKey(urn)]));
    }
  return { before, after };
}

const pathOf = async (steps: readonly Step[], needs: Readonly<Record<string, readonly string[]>>) => {
  const path = (await statisticsOf(steps, false, dependencies(needs))).criticalPath;
  return path && [path.seconds, ...path.steps.map(({ operation, urn }) => `${operation} ${urn}`)];
};

describe('the critical path', () => {
  test('goes back from the last step to the steps that each waited for', async () => {
    const steps = [
      step('net', 0, 5),
      step('bucket', 0, 40),
      step('db', 5, 60),
      step('cache', 5, 20),
      step('app', 60, 70),
    ];
    expect(await pathOf(steps, { db: ['net'], cache: ['net'], app: ['db', 'cache', 'bucket'] })).toEqual([
      ...[70, 'create net', 'create db', 'create app'],
    ]);
  });

  test('of deletes goes the other way', async () => {
    const steps = [step('app', 0, 10, 'delete'), step('db', 10, 90, 'delete'), step('net', 90, 95, 'delete')];
    expect(await pathOf(steps, { db: ['net'], app: ['db'] })).toEqual([95, 'delete app', 'delete db', 'delete net']);
  });

  test('has all steps of a replacement', async () => {
    const steps = [
      step('db', 0, 30, 'create-replacement'),
      step('app', 30, 40, 'update'),
      step('db', 40, 55, 'delete-replaced'),
    ];
    expect(await pathOf(steps, { app: ['db'] })).toEqual([55, 'create-replacement db', 'delete-replaced db']);
  });

  test('ends with circles, with no steps, and where dependencies are not known', async () => {
    expect(await pathOf([step('a', 0, 0), step('b', 0, 0)], { a: ['b'], b: ['a'] })).toHaveLength(3);
    expect(await statisticsOf([], false, dependencies({}))).toEqual({
      count: 0,
      failed: 0,
      slowest: [],
      criticalPath: null,
    });
    expect(await statisticsOf([step('a', 0, 1)], false, null)).toMatchObject({ criticalPath: null });
    expect(await statisticsOf([step('a', 0, 1)], true, dependencies({}))).toMatchObject({ criticalPath: null });
  });

  test('is found in a time slice per step', async () => {
    const steps = Array.from({ length: 60 }, (_, at) => step(`r${at}`, at, at + 1));
    const needs = Object.fromEntries(steps.slice(1).map(({ urn }, at) => [urn, [`r${at}`]]));
    let found: unknown[] | null = [];
    const slices = await slicesOf(async () => {
      found = await pathOf(steps, needs);
    });
    expect(found).toHaveLength(61);
    expect(slices).toBeGreaterThan(50);
  });
});

test('the slowest steps come first', async () => {
  const steps = Array.from({ length: 20 }, (_, at) => step(`r${at}`, 100, 100 + ((at * 7) % 20)));
  const { count, slowest } = await statisticsOf(steps, false, null);
  expect(count).toBe(20);
  expect(slowest.map(({ seconds }) => seconds)).toEqual([19, 18, 17, 16, 15, 14, 13, 12, 11, 10]);
});

describe('steps of events', () => {
  const event = (timestamp: unknown, type: string, metadata: unknown) =>
    JSON.stringify({ timestamp, [type]: { metadata } });

  test('begin and end; steps of unchanged resources are left out', () => {
    const times = new StepTimes();
    times.add(event(10, 'resourcePreEvent', { op: 'create', urn: 'a', type: 't' }));
    times.add(event(10, 'resourcePreEvent', { op: 'same', urn: 'b', type: 't' }));
    times.add(event(11, 'resourcePreEvent', { op: 'update', urn: 'c', type: 't' }));
    times.add(event(12, 'resOutputsEvent', { op: 'same', urn: 'b', type: 't' }));
    times.add(event(15, 'resOpFailedEvent', { op: 'update', urn: 'c', type: 't' }));
    times.add(event(19, 'resOutputsEvent', { op: 'create', urn: 'a', type: 't' }));
    times.add(event(20, 'resOutputsEvent', { op: 'create', urn: 'never begun', type: 't' }));
    expect(times.steps).toEqual([
      { urn: 'c', type: 't', operation: 'update', startedAt: 11, endedAt: 15, isFailed: true },
      { urn: 'a', type: 't', operation: 'create', startedAt: 10, endedAt: 19, isFailed: false },
    ]);
  });

  test('do not keep long types in memory', async () => {
    const growth = await heapGrowth(() => {
      const times = new StepTimes();
      for (let at = 0; at < 50; at++)
        times.add(event(10, 'resourcePreEvent', { op: 'create', urn: `r${at}`, type: 't'.repeat(mib) }));
      for (let at = 0; at < 50; at++) times.add(event(11, 'resOutputsEvent', { op: 'create', urn: `r${at}` }));
      expect(times.steps.map(({ type }) => type.length)).toEqual(Array.from({ length: 50 }, () => 300));
      return times;
    });
    expect(growth).toBeLessThan(10 * mib);
  });

  test.each([
    '{"resourcePreEvent":null,"op":"create"}',
    '{"resourcePreEvent":{"metadata":{"op":"create"}}}',
    '{"op":"create"',
    '["op"]',
    event('now', 'resOutputsEvent', { op: 'create', urn: 1 }),
  ])('anything else is ignored: %s', (text) => {
    const times = new StepTimes();
    times.add(text);
    expect(times.steps).toEqual([]);
  });
});

test('dependencies are found among the requested resources', async () => {
  const resources = [
    { dependencies: ['net', 'other'], urn: 'db', provider: 'prov::id-1', inputs: { dependencies: ['app'], urn: 'x' } },
    { urn: 'app', dependencies: ['db', 'db2'] },
    { urn: 'other', dependencies: ['net'] },
    { urn: 'net', dependencies: null },
  ];
  const text = Buffer.from(JSON.stringify({ version: 3, deployment: { resources } }));
  const scanner = new DependencyScanner(new Set(['net', 'db', 'app', 'prov'].map(urnKey)));
  await scanner.scan(Readable.from([text.subarray(0, 70), text.subarray(70)]));
  const { after, before } = scanner.found;
  expect([...before]).toEqual([
    [urnKey('db'), new Set([urnKey('net'), urnKey('prov')])],
    [urnKey('app'), new Set([urnKey('db')])],
  ]);
  expect(after.get(urnKey('db'))).toEqual(new Set([urnKey('app')]));
});

test('a dependency that a state names many times counts once, and is found in many time slices', async () => {
  const listed = (count: number): string[] => Array.from({ length: count }, () => 'net');
  const resources = [
    { urn: 'app', dependencies: listed(60_000) },
    { urn: 'other', dependencies: listed(60_000) },
    { dependencies: listed(60_000), urn: 'db' },
    { urn: 'app', dependencies: listed(2) },
  ];
  const text = Buffer.from(JSON.stringify({ version: 3, deployment: { resources } }));
  const scanner = new DependencyScanner(new Set(['net', 'app', 'db'].map(urnKey)));
  expect(await slicesOf(() => scanner.scan(Readable.from([text])))).toBeGreaterThan(text.length / 256 / 1024);
  const { after, before } = scanner.found;
  expect([...before.values()].map((needed) => [...needed])).toEqual([[urnKey('net')], [urnKey('net')]]);
  expect([...(after.get(urnKey('net')) ?? [])]).toEqual(['app', 'db'].map(urnKey));
});

describe('what is unusual', () => {
  const usual = {
    count: 40,
    seconds: [1, 9],
    waitedSeconds: [0, 0],
    counts: { creates: [0, 3], updates: [1, 1], replaces: [0, 0], deletes: [0, 2] },
    medians: { seconds: 5, waitedSeconds: 0, creates: 1, updates: 1, replaces: 0, deletes: 0 },
  } as const;
  const describeAll = (...given: Parameters<typeof findUnusual>) => findUnusual(...given).map(describeUnusual);
  test('is reported with the usual values', () => {
    const counts = countsOf('{"create":3,"update":2,"delete":14,"replace":-1,"same":"x"}');
    expect(counts).toEqual({ creates: 3, updates: 2, replaces: 0, deletes: 14 });
    expect(describeAll(counts, usual)).toEqual(['updates 2, usually 1', 'deletes 14, usually 0 to 2']);
    expect(describeAll({ seconds: 19.1, waitedSeconds: 10.6 }, usual)).toEqual([
      'took 19 s, usually 1 to 9 s',
      'waited 11 s, usually 0 s',
    ]);
    expect(describeAll({ seconds: 19, waitedSeconds: 10 }, usual)).toEqual([]);
    const long = { ...usual, seconds: [50, 100] } as const;
    expect(describeAll({ seconds: 150 }, long)).toEqual([]);
    expect(describeAll({ seconds: 151 }, long)).toEqual(['took 151 s, usually 50 to 100 s']);
  });
  test('needs some updates to compare with', () => {
    expect(describeAll(countsOf('{"delete":99}'), { ...usual, count: 4 })).toEqual([]);
    expect(describeAll(countsOf('[]'), usual)).toEqual([]);
    expect(describeAll(countsOf('no'), null)).toEqual([]);
  });
});

describe('signs of retries', () => {
  const begin = (op: string, urn: string, id?: string) =>
    JSON.stringify({ resourcePreEvent: { metadata: { op, urn, old: id === undefined ? null : { id } } } });
  const found = (events: readonly (readonly [string, string])[]) => {
    const signs = new RetrySigns();
    for (const [type, text] of events) signs.add(type, text);
    return signs.found;
  };
  const begins = (...texts: readonly string[]) => texts.map((text) => ['resourcePreEvent', text] as const);
  const messages = (urn: string, ...all: readonly string[]) =>
    all.map((message) => ['diagnosticEvent', JSON.stringify({ diagnosticEvent: { urn, message } })] as const);

  test('are steps that begin again, unless they are of another copy', () => {
    const events = begins(
      ...[begin('create', 'a'), begin('create', 'a'), begin('update', 'a', '1'), begin('update', 'a', '1')],
      ...[begin('delete', 'b', '1'), begin('delete', 'b', '2'), begin('same', 'c'), begin('same', 'c')],
    );
    expect(found(events)).toEqual({ repeats: 2, messages: 0, resources: [{ urn: 'a', repeats: 2, messages: 0 }] });
  });

  test('are messages that mention another attempt', () => {
    const events = [
      ...messages(
        'a',
        'Retry #1; creation failed: x',
        'retrying in 5s',
        'attempt 3 of 10',
        'created',
        'retrying\u0000',
      ),
      ...messages('b', 'timed out; please retry', 'throttled, retried after 2s', 'retryable errors are listed'),
      ...messages('', 'retrying the download of a plugin'),
      ['diagnosticEvent', '{"diagnosticEvent":"retry'] as const,
      ['stdoutEvent', '{"diagnosticEvent":{"urn":"a","message":"retry"}}'] as const,
    ];
    expect(found(events)).toEqual({
      ...{ repeats: 0, messages: 5 },
      resources: [
        { urn: 'a', repeats: 0, messages: 4 },
        { urn: 'b', repeats: 0, messages: 1 },
      ],
    });
  });
});
