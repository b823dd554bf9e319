import type { EventReader } from '../../../shared/events/event-reader.ts';
import type { StoredEvent } from '../../../shared/events/event-segments.ts';
import type { Folder } from '../../../shared/platform/blobs/folder.ts';
import { ArchiveDamagedError, readArchived } from './archive-files.ts';
import type { ArchivedFile } from './archive-layout.ts';

const page = { events: 500, bytes: 1024 * 1024 };
const lineFeed = 10;
/** Far more than a page. Limited, because a short file can decompress to a line that exceeds the memory. */
const maxLineBytes = 64 * 1024 * 1024;

/** The engine events of an ended update, as lines of `{"events":[…]}`. */
export function archivedEvents(
  reader: EventReader,
  updateId: string,
): { readonly lines: AsyncGenerator<Buffer>; readonly count: () => number } {
  let count = 0;
  const lines = async function* (): AsyncGenerator<Buffer> {
    for (let beyond = -1; ; ) {
      const before = count;
      const selection = { beyond, newestFirst: false, urn: null, types: null };
      for await (const batch of reader.read({ id: updateId, mayHaveRows: true }, selection, page)) {
        const texts = await Promise.all(batch.map(textOf));
        if (texts.length > 0) yield Buffer.from(`{"events":[${texts.join()}]}\n`);
        count += batch.length;
        beyond = batch.at(-1)?.sequence ?? beyond;
      }
      if (count === before) return;
    }
  };
  return { lines: lines(), count: () => count };
}

/** Reads the lines back. Throws ArchiveDamagedError. */
export async function* readArchivedEvents(folder: Folder, file: ArchivedFile): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of readArchived(folder, file)) {
    let from = 0;
    for (let at = chunk.indexOf(lineFeed); at >= 0; at = chunk.indexOf(lineFeed, from)) {
      yield Buffer.concat([...parts, chunk.subarray(from, at)]);
      [parts, bytes, from] = [[], 0, at + 1];
    }
    bytes += chunk.length - from;
    if (bytes > maxLineBytes)
      throw new ArchiveDamagedError(`${file.name} has a line of more than ${maxLineBytes} bytes`);
    if (from < chunk.length) parts.push(Buffer.from(chunk.subarray(from)));
  }
  if (parts.length > 0) yield Buffer.concat(parts);
}

async function textOf({ text }: StoredEvent): Promise<string> {
  if (typeof text !== 'function') return text.toString('utf8');
  const parts: Buffer[] = [];
  for await (const part of text()) parts.push(Buffer.from(part));
  return Buffer.concat(parts).toString('utf8');
}
