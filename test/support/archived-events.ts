import { Type } from 'typebox';
import type { EventSelection } from '../../src/shared/events/event-repository.ts';
import { sql } from '../../src/shared/platform/db/sql.ts';
import { type ArchivedSegment, EventArchiver, type SegmentLimits } from '../../src/workers/events/event-archiver.ts';
import type { TestApp } from './test-app.ts';

/** Small enough that a few hundred events fill several segments of several frames. */
export const smallLimits: SegmentLimits = { events: 60, bytes: 16 * 1024, frameBytes: 2 * 1024 };

/** An event as it is stored. */
export interface SampleEvent {
  readonly sequence: number;
  readonly type: string;
  readonly urn: string | null;
  readonly text: string;
}

export function sampleEvent(
  sequence: number,
  { type = 'stdoutEvent', urn = null as string | null, chars = 40 } = {},
): SampleEvent {
  const payload = { ...(urn === null ? {} : { urn }), message: `m${sequence}é `.repeat(Math.ceil(chars / 6)) };
  return { sequence, type, urn, text: JSON.stringify({ sequence, timestamp: 1, [type]: payload }) };
}

/** Inserts event rows, whatever the status of their update. */
export async function insertEvents(
  { context }: TestApp,
  updateId: string,
  events: readonly SampleEvent[],
): Promise<void> {
  await context.db.query(sql.nothing`
    insert into engine_events (update_id, sequence, event, type, urn)
    select ${updateId}::uuid, e.* from unnest(${sql.array(
      events.map(({ sequence }) => sequence),
      'int8',
    )}, ${sql.array(
      events.map(({ text }) => text),
      'text',
    )}, ${sql.array(
      events.map(({ type }) => type),
      'text',
    )}, ${sql.array(
      events.map(({ urn }) => urn),
      'text',
    )}) as e`);
}

/** Made by SQL. Returns the id of the update. */
export async function insertEndedUpdate(
  app: TestApp,
  stackId: string,
  events: readonly SampleEvent[],
): Promise<string> {
  const { id } = await app.context.db.one(sql.rows(Type.Object({ id: Type.String() }))`
    insert into updates (stack_id, kind, exclusive, status, expires_at, ended_at)
    values (${stackId}, 'preview', false, 'succeeded', now(), now()) returning id`);
  await insertEvents(app, id, events);
  return id;
}

/** Returns whether no rows are left. */
export function pack(
  { context }: TestApp,
  updateId: string,
  {
    limits = smallLimits,
    onSegment = async () => {},
    ...parts
  }: { limits?: SegmentLimits; onSegment?: (segment: ArchivedSegment) => Promise<void> } & Partial<
    Pick<TestApp['context'], 'db' | 'documents'>
  > = {},
): Promise<boolean> {
  return new EventArchiver({ ...context, ...parts, limits }).pack(updateId, onSegment);
}

/** Event rows and segments of an update. */
export async function countStored(app: TestApp, updateId: string): Promise<{ rows: number; segments: number }> {
  return app.context.db.one(sql.rows(Type.Object({ rows: Type.Integer(), segments: Type.Integer() }))`
    select (select count(*)::integer from engine_events where update_id = ${updateId}) as rows,
      (select count(*)::integer from event_segments where update_id = ${updateId}) as segments`);
}

export async function readPages(
  { context }: TestApp,
  updateId: string,
  selection: Partial<EventSelection> = {},
  pageEvents = 500,
): Promise<SampleEvent['text'][]> {
  const newestFirst = selection.newestFirst ?? false;
  const texts: string[] = [];
  for (let beyond = selection.beyond ?? (newestFirst ? Number.MAX_SAFE_INTEGER : -1); ; ) {
    let count = 0;
    const page = { urn: null, types: null, ...selection, beyond, newestFirst };
    const update = { id: updateId, mayHaveRows: true };
    read: for await (const events of context.eventReader.read(update, page, { events: pageEvents, bytes: 2 ** 20 })) {
      for (const { sequence, text } of events) {
        const parts = typeof text === 'function' ? await Array.fromAsync(text()) : [text];
        texts.push(Buffer.concat(parts.map((part) => Buffer.from(part as string))).toString());
        beyond = sequence;
        count++;
        if (count === pageEvents) break read;
      }
    }
    if (count < pageEvents) return texts;
  }
}
