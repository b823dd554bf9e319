import { JsonScanner } from '../platform/json/json-scanner.ts';
import { ScanWindow } from '../platform/json/scan-window.ts';
import { denseSliceBytes, inSlices, slicesOf } from '../platform/slices/slices.ts';

/** Larger resources are skipped. */
const maxResourceBytes = 8 * 1024 * 1024;

export interface ResourceScan {
  /** Resources that were too large. */
  readonly skipped: number;
  /** Length of the document. */
  readonly bytes: number;
}

/**
 * Calls `onResource` with raw JSON, in order. The text is valid until the call ends. Reads the document to its end, and holds at most one
 * resource in memory. `pause` is called between resources and slices. Throws JsonSyntaxError.
 */
export async function scanResources(
  document: AsyncIterable<Buffer>,
  onResource: (text: Buffer) => Promise<void> | void,
  pause: () => Promise<void>,
): Promise<ResourceScan> {
  const texts = new ScanWindow(maxResourceBytes);
  let skipped = 0;
  /** Resources that end in the current chunk. Some share its memory. */
  let found: Buffer[] = [];
  const scanner = new JsonScanner({
    reportDepth: 3,
    onValue: (path, kind, start, end) => {
      if (path.length === 3 && path[0] === 'deployment' && path[1] === 'resources' && kind === 'object') {
        const text = texts.textOf(start, end);
        if (text === null) skipped++;
        else found.push(text);
      }
      texts.pass(end);
    },
  });
  for await (const chunk of inSlices(document)) {
    for (const slice of slicesOf(chunk, denseSliceBytes)) {
      texts.beginChunk(slice);
      scanner.write(slice);
      texts.endChunk();
      for (const text of found) {
        await onResource(text);
        await pause();
      }
      found = [];
      await pause();
    }
  }
  return { skipped, bytes: scanner.end() };
}
