import { createHash } from 'node:crypto';
import fc from 'fast-check';
import type pg from 'pg';
import { creation } from '../journal-entries.ts';
import { deployment } from '../state.ts';
import type { TestApp, TestResponse } from '../test-app.ts';
import { changeStatement } from './changes.ts';
import { changeBefore, withoutTimes } from './late-changes.ts';
import type { SeededFixture } from './seeded-fixture.ts';

/** Compared with the writes before it. */
type Order = 'next' | 'repeated' | 'old';

type Late = { readonly late: (typeof lates)[number] | null };
const lates = [
  ...(['its lease expires', 'its lease is taken away', 'it is cancelled'] as const),
  'the stack is deleted with its updates',
] as const;

export type Write =
  | ({ readonly write: 'full'; readonly count: number } & Late)
  | ({ readonly write: 'verbatim'; readonly value: string; readonly order: Order; readonly isValid: boolean } & Late)
  | ({
      readonly write: 'delta';
      readonly value: string;
      readonly order: Order;
      readonly base: 'last' | 'older';
      readonly hash: 'right' | 'wrong';
    } & Late)
  | ({ readonly write: 'journal'; readonly count: number; readonly order: Order; readonly skips: boolean } & Late)
  | ({ readonly write: 'events'; readonly count: number; readonly order: Order; readonly withSummary: boolean } & Late)
  | { readonly write: 'renew' | 'complete' };

/** One update and what its client writes. */
export interface Writing {
  readonly kind: 'update' | 'preview' | 'destroy';
  readonly withJournal: boolean;
  readonly writes: readonly Write[];
}

const order = fc.oneof(
  { weight: 8, arbitrary: fc.constant<Order>('next') },
  { weight: 2, arbitrary: fc.constant<Order>('repeated') },
  { weight: 1, arbitrary: fc.constant<Order>('old') },
);
const late = fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.constantFrom(...lates) });
const value = fc.string({ unit: 'grapheme', maxLength: 8 });
const often = (weight: number): fc.Arbitrary<boolean> =>
  fc.integer({ min: 1, max: 100 }).map((found) => found <= weight);

const verbatim: fc.Arbitrary<Write> = fc.record({
  write: fc.constant('verbatim'),
  value,
  order,
  isValid: often(90),
  late,
});
const delta: fc.Arbitrary<Write> = fc.record({
  ...{ write: fc.constant('delta'), value, order, late },
  base: often(85).map((isLast) => (isLast ? 'last' : 'older')),
  hash: often(90).map((isRight) => (isRight ? 'right' : 'wrong')),
});
const full: fc.Arbitrary<Write> = fc.record({ write: fc.constant('full'), count: fc.nat({ max: 3 }), late });
const journal: fc.Arbitrary<Write> = fc.record({
  ...{ write: fc.constant('journal'), count: fc.integer({ min: 1, max: 3 }), order, late },
  skips: often(10),
});
const events: fc.Arbitrary<Write> = fc.record({
  ...{ write: fc.constant('events'), count: fc.integer({ min: 1, max: 3 }), order, late },
  withSummary: often(20),
});
const renew: fc.Arbitrary<Write> = fc.constant({ write: 'renew' });
const complete: fc.Arbitrary<Write> = fc.constant({ write: 'complete' });

export const writing: fc.Arbitrary<Writing> = fc
  .record({
    kind: fc.constantFrom<Writing['kind']>('update', 'update', 'update', 'preview', 'destroy'),
    withJournal: fc.boolean(),
  })
  .chain((begun) =>
    fc
      .array(
        begun.withJournal
          ? fc.oneof(journal, journal, events, full, renew)
          : fc.oneof(verbatim, delta, delta, full, events, renew),
        {
          ...{ minLength: 2, maxLength: 7 },
        },
      )
      .map((writes) => ({ ...begun, writes: begun.withJournal ? writes : [firstCheckpoint, ...writes] })),
  )
  .chain((begun) =>
    fc.array(complete, { maxLength: 1 }).map((ends) => ({ ...begun, writes: [...begun.writes, ...ends] })),
  );

const firstCheckpoint: Write = { write: 'verbatim', value: 'a', order: 'next', isValid: true, late: null };

const start = '{"version":3,"deployment":{"resources":[],"x":';
const textOf = (written: string): string => `${start}${JSON.stringify(written)}}}`;

/** Each call goes to the next of the replicas. */
export async function playWrites(
  replicas: readonly TestApp[],
  client: pg.Pool,
  { ids, name, tokens }: SeededFixture,
  { kind, withJournal, writes }: Writing,
  prepare: (updateId: string) => Promise<unknown>,
) {
  let turn = 0;
  const call = (...parts: Parameters<TestApp['call']>): Promise<TestResponse> =>
    (replicas[turn++ % replicas.length] as TestApp).call(...parts);
  const stack = `/api/stacks/${name}/proj/dev`;
  const auth = `token ${tokens.member.token}`;
  const created = await call('POST', `${stack}/${kind}`, { auth, body: {} });
  const { updateID: id } = created.json;
  const url = `${stack}/update/${id}`;
  const started = await call('POST', url, { auth, body: { journalVersion: withJournal ? 1 : 0 } });
  const by = { auth: `update-token ${started.json.token}` };
  await prepare(id);

  const numbers = { checkpoint: 0, entry: 1, event: 0 };
  let last = textOf('');
  let older = last;
  const numberOf = (of: Order): number => {
    if (of === 'next') numbers.checkpoint++;
    return Math.max(numbers.checkpoint - (of === 'old' ? 1 : 0), 0);
  };
  const send = (write: Write): Promise<TestResponse> => {
    switch (write.write) {
      case 'full':
        return call('PATCH', `${url}/checkpoint`, { ...by, body: deployment(write.count) });
      case 'verbatim': {
        const text = write.isValid ? textOf(write.value) : '{"version":3,"deployment":[]}';
        const body = `{"version":3,"untypedDeployment":${text},"sequenceNumber":${numberOf(write.order)}}`;
        return call('PATCH', `${url}/checkpointverbatim`, { ...by, body });
      }
      case 'delta': {
        const base = write.base === 'last' ? last : older;
        const end = Buffer.byteLength(base) - 2;
        const text = write.hash === 'right' ? textOf(write.value) : 'other';
        const body = {
          ...{ version: 3, sequenceNumber: numberOf(write.order) },
          checkpointHash: createHash('sha256').update(text).digest('hex'),
          deploymentDelta: [
            { Span: { start: { offset: start.length }, end: { offset: end } }, NewText: JSON.stringify(write.value) },
          ],
        };
        return call('PATCH', `${url}/checkpointdelta`, { ...by, body });
      }
      case 'journal': {
        if (write.skips) numbers.entry += 2;
        const first =
          write.order === 'next' ? numbers.entry : Math.max(numbers.entry - (write.order === 'old' ? 4 : 2), 1);
        const entries = Array.from({ length: write.count }, (_, at) =>
          creation(first + 2 * at, `r${first + 2 * at}`, { project: 'proj', stack: 'dev' }),
        ).flat();
        numbers.entry = Math.max(numbers.entry, first + 2 * write.count);
        return call('PATCH', `${url}/journalentries`, { ...by, body: { entries } });
      }
      case 'events': {
        const first =
          write.order === 'next' ? numbers.event : Math.max(numbers.event - (write.order === 'old' ? 2 : 1), 0);
        const made = Array.from({ length: write.count }, (_, at) => ({
          sequence: first + at,
          timestamp: 1,
          diagnosticEvent: { message: `m${first}` },
        }));
        numbers.event = Math.max(numbers.event, first + write.count);
        const summary = { sequence: numbers.event, timestamp: 2, summaryEvent: { resourceChanges: { create: first } } };
        return call('POST', `${url}/events/batch`, {
          ...by,
          body: { events: write.withSummary ? [...made, summary] : made },
        });
      }
      case 'renew':
        return call('POST', `${url}/renew_lease`, { ...by, body: { duration: 900 } });
      case 'complete':
        return call('POST', `${url}/complete`, { ...by, body: { status: 'succeeded' } });
    }
  };

  const answers: object[] = [];
  let isOver = false;
  for (const write of writes) {
    // A repeat, or a call after the end, may get the response from before or after the change: both are right.
    const isRepeat = 'order' in write && write.order !== 'next';
    const change: Late['late'] = 'late' in write && !isOver && !isRepeat ? write.late : null;
    isOver ||= change !== null;
    const answer = await changeBefore(
      id,
      change &&
        (async () =>
          void (await client.query(
            changeStatement(change, { ...ids, latest: id, caller: tokens.member.id, fresh: id }),
          ))),
      () => send(write),
    );
    if (answer.status < 300 && (write.write === 'verbatim' || write.write === 'delta') && write.order === 'next') {
      older = last;
      last = textOf(write.value);
    }
    answers.push({ step: write, status: answer.status, body: withoutTimes(answer.text, [id]) });
  }
  const exported = await call('GET', `${stack}/export`, { auth: `token ${tokens.admin.token}` });
  return [...answers, { step: 'export', status: exported.status, body: withoutTimes(exported.text, [id]) }];
}
