import { createHash } from 'node:crypto';
import { deploymentOf } from '../../../bench/support/raw-client.ts';

const markBytes = 48;
const bases = new Map<number, Buffer>();

/** A unique deployment document of about `bytes` bytes that contains `mark`. */
export function documentOf(bytes: number, mark: string): Buffer {
  const base = bases.get(bytes) ?? deploymentOf(bytes, bytes);
  bases.set(bytes, base);
  const at = markLocation(base);
  return Buffer.concat([base.subarray(0, at), Buffer.from(mark.padEnd(markBytes, '.')), base.subarray(at)]);
}

/** The body of a delta that turns a document of `documentOf` into the one that contains `mark`. */
export function deltaTo(document: Buffer, mark: string, sequenceNumber: number): object {
  const start = markLocation(document);
  return {
    version: 3,
    checkpointHash: sha256(document),
    sequenceNumber,
    deploymentDelta: [
      {
        Span: {
          uri: '',
          start: { line: 1, column: 1, offset: start },
          end: { line: 1, column: 1, offset: start + markBytes },
        },
        NewText: mark.padEnd(markBytes, '.'),
      },
    ],
  };
}

export function sha256(bytes: Buffer | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function markLocation(document: Buffer): number {
  const label = '"magic":"';
  return document.indexOf(label) + label.length;
}
