import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { codeOf } from '../../shared/platform/errors/causes.ts';

/** No faster than the reader reads them. Returns false if the reader has closed the pipe. Leaves `out` open. */
export async function printLines(lines: AsyncIterable<string>, out: NodeJS.WritableStream): Promise<boolean> {
  // `pipeline` into `out` itself would leave a listener on it until the process ends.
  const writer = new Writable({
    write: (chunk: Buffer, _encoding, done) => void out.write(chunk, done),
  });
  // The callback of `write` gets the error, too, before it is emitted.
  const ignore = (): void => {};
  out.on('error', ignore);
  try {
    await pipeline(Readable.from(lines), writer);
  } catch (error) {
    if (codeOf(error) === 'EPIPE') return false;
    throw error;
  }
  out.off('error', ignore);
  return true;
}
