import { TransferError } from '../../shared/diy/diy-layout.ts';
import { splitEventBatch } from '../../shared/events/event-batch.ts';
import type { EngineEventText } from '../../shared/events/event-repository.ts';
import type { SourceEntry } from './moving-source.ts';

/** In characters, for one update, held in memory until they are committed with it. */
const maxEventsLength = 128 * 1024 * 1024;

/** The type that an API's pages add before the text of the engine. */
const addedType = /^\{"type":"(\w+Event)",(?=")/;

/** Each event is returned once. Throws TransferError and InvalidRequestError. */
export async function readEvents(
  read: NonNullable<SourceEntry['events']>,
  maxEventBytes: number,
): Promise<readonly EngineEventText[]> {
  const found = new Map<number, EngineEventText>();
  let length = 0;
  for await (const page of read()) {
    for (const event of (await splitEventBatch(page, maxEventBytes)).events) {
      length += event.text.length;
      if (length > maxEventsLength) throw new TransferError(`they have more than ${maxEventsLength} characters`);
      found.set(event.sequence, asSent(event));
    }
  }
  return [...found.values()];
}

export async function countEvents(read: NonNullable<SourceEntry['events']>): Promise<number> {
  const found = new Set<number>();
  for await (const page of read()) {
    const { events } = JSON.parse(page.toString('utf8')) as {
      events: readonly ({ readonly sequence: number } | null)[];
    };
    for (const event of events) if (event) found.add(event.sequence);
  }
  return found.size;
}

function asSent(event: EngineEventText): EngineEventText {
  const type = event.type === '' ? addedType.exec(event.text)?.[1] : undefined;
  if (type === undefined || !event.text.includes(`"${type}":`)) return event;
  return { ...event, type, text: event.text.replace(addedType, '{') };
}
