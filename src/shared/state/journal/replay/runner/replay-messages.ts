import type { ManifestSource } from '../../../deployments/write-document.ts';
import type { JournalPage, ReplayStart } from './replay-work.ts';

export interface ReplayRequest {
  readonly call: number;
  readonly replay: number;
  readonly step: ReplayStep;
}

export type ReplayStep =
  | { readonly name: 'open'; readonly start: ReplayStart }
  | { readonly name: 'apply'; readonly page: JournalPage }
  | { readonly name: 'write' | 'encode'; readonly manifest: ManifestSource }
  | { readonly name: 'progress' | 'snapshot' | 'close' };

/** `invalid` is the message of a JournalReplayError, `damaged` represents a DamagedStartError. */
export type ReplayReply = { readonly call: number } & (
  | { readonly result: unknown }
  | { readonly invalid: string }
  | { readonly damaged: { readonly part: keyof ReplayStart; readonly message: string } }
  | { readonly fault: unknown }
);

/** Omits parts that share their buffer, e.g. Buffer's pool, and have to be copied. */
export function transferable(...parts: readonly (Uint8Array | null | undefined)[]): ArrayBuffer[] {
  return parts.flatMap((part) => {
    const ownsBuffer = part && part.byteLength >= minTransferredBytes && part.byteLength === part.buffer.byteLength;
    return ownsBuffer && part.buffer instanceof ArrayBuffer ? [part.buffer] : [];
  });
}

/** Larger than Buffer's pool. Smaller parts are cheap to copy. */
const minTransferredBytes = 256 * 1024;
