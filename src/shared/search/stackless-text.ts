import { createHash, type Hash } from 'node:crypto';
import { denseSliceBytes, Slices } from '../platform/slices/slices.ts';
import { withoutStack } from './resource-key.ts';

const quote = 0x22;
const backslash = 0x5c;

/** Ignores the stack's name in URNs. Runs in slices of the event loop. */
export async function isSameWithoutStack(before: Buffer, after: Buffer): Promise<boolean> {
  const digest = async (text: Buffer): Promise<string> => {
    const hash = createHash('sha256');
    await hashWithoutStack(hash, text, new Slices(denseSliceBytes));
    return hash.digest('base64');
  };
  return (await digest(before)) === (await digest(after));
}

/** Hashes each URN in the form of `withoutStack`. */
export async function hashWithoutStack(hash: Hash, text: Buffer, slices: Slices): Promise<void> {
  for (const slice of slicesAtQuotes(text)) {
    const hasUrns = slice.includes('urn:pulumi:');
    hash.update(hasUrns ? slice.toString('utf8').replace(/urn:pulumi:[^"\\]*/g, withoutStack) : slice);
    await slices.spend(slice.length);
  }
}

/** Slices of about `denseSliceBytes` end after a quote or a backslash, so that no URN is split. */
function* slicesAtQuotes(text: Buffer): Generator<Buffer> {
  let from = 0;
  while (text.length - from > denseSliceBytes) {
    const least = from + denseSliceBytes;
    const nextQuote = text.indexOf(quote, least);
    const end = nextQuote < 0 ? text.length : nextQuote;
    const nextBackslash = text.subarray(least, end).indexOf(backslash);
    const to = Math.min(nextBackslash < 0 ? end + 1 : least + nextBackslash + 1, text.length);
    yield text.subarray(from, to);
    from = to;
  }
  yield text.subarray(from);
}
