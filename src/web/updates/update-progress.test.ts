import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { nameInUrn, shortType } from '../platform/app/resource-name.ts';
import { diffJson } from '../platform/ui/json-diff.ts';
import { stripColors } from './colored-text.ts';
import { describeEvent, type EngineEvent, readEvent } from './engine-event.ts';
import { listErrors } from './error-list.ts';
import { groupMessages, messagesAsText } from './message-lines.ts';
import { listTreeRows, type TreeFilter } from './tree-rows.ts';
import { UpdateProgress } from './update-progress.ts';

const stackUrn = 'urn:pulumi:dev::web::pulumi:pulumi:Stack::web-dev';
const urnOf = (name: string): string => `urn:pulumi:dev::web::aws:s3/bucket:Bucket::${name}`;
const all: TreeFilter = { showUnchanged: true, text: '', collapsed: new Set() };

interface StepOptions {
  op?: string;
  parent?: string;
  at?: number;
  diffs?: string[];
}

function step(
  kind: 'pre' | 'outputs' | 'failed',
  sequence: number,
  urn: string,
  options: StepOptions = {},
): EngineEvent {
  const { op = 'create', parent = stackUrn, at = sequence, diffs = [] } = options;
  const metadata = {
    op,
    urn,
    type: urn.split('::')[2] as string,
    new: { parent: urn === stackUrn ? '' : parent },
    diffs,
  };
  const base = { sequence, timestamp: at };
  if (kind === 'pre') return { ...base, resourcePreEvent: { metadata } };
  return kind === 'outputs' ? { ...base, resOutputsEvent: { metadata } } : { ...base, resOpFailedEvent: { metadata } };
}

function read(events: readonly EngineEvent[]): UpdateProgress {
  const progress = new UpdateProgress();
  for (const event of events) progress.add(event);
  return progress;
}

function draw(progress: UpdateProgress, filter: TreeFilter = all): string[] {
  return listTreeRows(progress, filter).map(
    ({ row, depth }) => `${'  '.repeat(depth)}${row.urn.split('::').at(-1)} ${row.op} ${row.status}`,
  );
}

const typical = [
  step('pre', 0, stackUrn),
  step('pre', 1, urnOf('a')),
  step('pre', 2, urnOf('b'), { parent: urnOf('a') }),
  step('outputs', 3, urnOf('a'), { at: 9 }),
  step('failed', 4, urnOf('b'), { parent: urnOf('a') }),
  step('pre', 5, urnOf('c'), { op: 'same' }),
  step('outputs', 6, urnOf('c'), { op: 'same' }),
];

describe('the tree of an update', () => {
  test('shows resources below their parents with their results', () => {
    const progress = read(typical);
    expect(draw(progress)).toEqual([
      'web-dev create running',
      '  a create done',
      '    b create failed',
      '  c same done',
    ]);
    expect(progress.rows.get(urnOf('a'))).toMatchObject({ startedAt: 1, endedAt: 9 });
    expect(progress).toMatchObject({ runningCount: 1, failedCount: 1, eventCount: 7 });
    expect(progress.doneByOperation).toEqual(
      new Map([
        ['create', 1],
        ['same', 1],
      ]),
    );
  });

  test('is the same for any order and repetition of events', () => {
    const expected = draw(read(typical)).sort();
    fc.assert(
      fc.property(fc.shuffledSubarray([...typical, ...typical], { minLength: 14, maxLength: 14 }), (events) => {
        const progress = read(events);
        expect(draw(progress).sort()).toEqual(expected);
        expect(progress).toMatchObject({ runningCount: 1, failedCount: 1, eventCount: 7 });
      }),
      { numRuns: 50 },
    );
  });

  test('makes one row of the steps of a replacement', () => {
    const urn = urnOf('r');
    const progress = read([
      step('pre', 0, urn, { op: 'create-replacement', diffs: ['acl'] }),
      step('outputs', 1, urn, { op: 'create-replacement' }),
      step('pre', 2, urn, { op: 'delete-replaced' }),
    ]);
    expect(progress.rows.get(urn)).toMatchObject({ op: 'replace', status: 'running', diffs: ['acl'] });
    progress.add(step('outputs', 3, urn, { op: 'delete-replaced', at: 30 }));
    expect(progress.rows.get(urn)).toMatchObject({ status: 'done', startedAt: 0, endedAt: 30 });
  });

  test('hides unchanged resources without messages, but not the ancestors of shown ones', () => {
    const quiet = { ...all, showUnchanged: false };
    const progress = read([
      step('pre', 0, stackUrn, { op: 'same' }),
      step('outputs', 1, urnOf('group'), { op: 'same' }),
      step('pre', 2, urnOf('inner'), { parent: urnOf('group') }),
      step('outputs', 3, urnOf('quiet'), { op: 'same' }),
    ]);
    expect(draw(progress, quiet)).toEqual(['web-dev same running', '  group same done', '    inner create running']);
    expect(draw(progress, { ...all, text: 'INNER' })).toHaveLength(3);
    expect(draw(progress, { ...all, collapsed: new Set([urnOf('group')]) })).not.toContain('inner');
  });

  test('survives a cycle of parents', () => {
    const progress = read([
      step('pre', 0, urnOf('a'), { parent: urnOf('b') }),
      step('pre', 1, urnOf('b'), { parent: urnOf('a') }),
      step('pre', 2, urnOf('self'), { parent: urnOf('self') }),
    ]);
    expect(draw(progress)).toHaveLength(3);
  });

  test('joins the parts of an output, and keeps messages with their resource', () => {
    const of = (sequence: number, rest: NonNullable<EngineEvent['diagnosticEvent']>): EngineEvent => ({
      ...{ sequence, timestamp: 5, diagnosticEvent: rest },
    });
    const progress = read([
      of(0, { urn: urnOf('a'), message: 'one ', severity: 'info#err', streamID: 3 }),
      of(1, { urn: urnOf('a'), message: 'line\n', severity: 'info#err', streamID: 3 }),
      of(2, { urn: urnOf('a'), prefix: 'error: ', message: 'no', severity: 'error' }),
      of(3, { urn: urnOf('a'), message: 'waiting', severity: 'info', ephemeral: true }),
      of(4, { message: 'about all', severity: 'warning' }),
      of(5, { message: '  \n', severity: 'info' }),
    ]);
    const row = progress.rows.get(urnOf('a'));
    expect(row?.diagnostics.map(({ message }) => message)).toEqual(['one line\n', 'no']);
    expect(row).toMatchObject({ worst: 'error', activity: 'waiting', status: 'known', type: 'aws:s3/bucket:Bucket' });
    expect(progress.diagnostics).toHaveLength(1);
    expect(progress.diagnosticCounts).toEqual({ info: 1, warning: 1, error: 1 });
  });

  test('joins the parts of outputs in their order, in whatever order they arrive', () => {
    const message = fc.record({
      message: fc.constantFrom('one ', 'two\n', ' ', 'x'.repeat(40_000)),
      urn: fc.constantFrom('', urnOf('a')),
      severity: fc.constantFrom('info', 'debug', 'error'),
      streamID: fc.nat(2),
    });
    const arrival = fc
      .array(message, { maxLength: 12 })
      .map((all) => all.map((diagnosticEvent, sequence) => ({ sequence, timestamp: 5, diagnosticEvent })))
      .chain((events) => fc.tuple(fc.constant(events), fc.shuffledSubarray(events, { minLength: events.length })));
    fc.assert(
      fc.property(arrival, ([sent, arrived]) => {
        const [expected, progress] = [read(sent), read(arrived)];
        expect(groupMessages(progress)).toEqual(groupMessages(expected));
        expect(progress.diagnosticCounts).toEqual(expected.diagnosticCounts);
        expect(progress.rows.get(urnOf('a'))?.worst).toBe(expected.rows.get(urnOf('a'))?.worst);
      }),
      { numRuns: 1_000 },
    );
  });

  test('takes the summary from the last event', () => {
    const progress = read([
      {
        ...{ sequence: 9, timestamp: 60 },
        summaryEvent: { durationSeconds: 12, resourceChanges: { create: 2 }, result: 'failed', isPreview: false },
      },
    ]);
    expect(progress.summary).toEqual({
      durationSeconds: 12,
      changes: { create: 2 },
      result: 'failed',
      maybeCorrupt: false,
    });
  });

  test('shows a chain of 20,000 resources, the children first', () => {
    const count = 20_000;
    const events = Array.from({ length: count }, (_, at) =>
      step('pre', at, urnOf(String(at)), { parent: at + 1 === count ? '' : urnOf(String(at + 1)) }),
    );
    expect(listTreeRows(read(events), all)).toHaveLength(count);
  });
});

test('skips invalid events', () => {
  for (const bad of [
    null,
    1,
    'x',
    {},
    { sequence: 1 },
    { sequence: 1, timestamp: 2, resourcePreEvent: { metadata: {} } },
  ]) {
    expect(readEvent(bad)).toBeNull();
  }
  expect(readEvent(step('pre', 1, stackUrn))).not.toBeNull();
});

test('survives events with fields of other types, which any client may store', () => {
  const odd = [null, 5, 'x', true, {}, [], [1], { a: null }];
  const at = { op: 'delete', urn: urnOf('a'), type: 'aws:s3/bucket:Bucket' };
  const state = (value: unknown) => ({ type: value, parent: value, protect: value, inputs: value, outputs: value });
  const eventsWith = (value: unknown): object[] => [
    { resourcePreEvent: value },
    { resourcePreEvent: { metadata: value } },
    { resourcePreEvent: { metadata: { ...at, type: value, diffs: value, detailedDiff: value } } },
    { resOutputsEvent: { metadata: { ...at, old: value, new: value } } },
    { resOpFailedEvent: { metadata: { ...at, old: state(value), new: state(value) } } },
    { diagnosticEvent: value },
    { diagnosticEvent: { urn: value, prefix: value, message: value, severity: 'error', streamID: value } },
    { diagnosticEvent: { urn: urnOf('a'), message: 'm', severity: value, ephemeral: value } },
    { policyEvent: value },
    { policyEvent: { resourceUrn: value, message: value, policyName: value, policyPackName: value } },
    { stdoutEvent: { message: value } },
    { errorEvent: { error: value } },
    { preludeEvent: { config: value } },
    { progressEvent: { id: value, message: value, received: value, total: value } },
    { progressEvent: { id: 'p', message: value, received: value, done: value } },
    { summaryEvent: { resourceChanges: value, durationSeconds: value, result: value } },
    { cancelEvent: value },
    { noSuchEvent: value },
  ];
  const progress = new UpdateProgress();
  const timestamps = [1, -1, 999_999_999_999_999, -999_999_999_999_999];
  let sequence = 0;
  for (const value of odd) {
    for (const event of eventsWith(value)) {
      const timestamp = timestamps[sequence % timestamps.length];
      const read = readEvent({ ...event, sequence: sequence++, timestamp });
      if (read === null) continue;
      const { text, urn } = describeEvent(read);
      expect([typeof stripColors(text), nameInUrn(urn ?? '')]).toEqual(['string', expect.any(String)]);
      expect(new Date(read.timestamp * 1000).toISOString()).toMatch(/^\d{4}-/);
      progress.add(read);
    }
  }
  for (const { row } of listTreeRows(progress, all)) {
    expect([row.urn, row.type, row.diffs.join(), shortType(row.type)]).toEqual(Array(4).fill(expect.any(String)));
    diffJson(row.lastStep?.old?.inputs, row.lastStep?.new?.inputs);
  }
  expect(listErrors(progress).map(({ diagnostic }) => stripColors(diagnostic.message))).not.toHaveLength(0);
  expect(messagesAsText(groupMessages(progress))).toContain(urnOf('a'));
  expect(progress.rows.get(urnOf('a'))?.op).toBe('delete');
});
