import type { ManifestSource } from '../../../deployments/write-document.ts';
import type { JournalPage, ReplayStart } from './replay-work.ts';

/** One step of one replay, for the thread that does it. */
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

/** `invalid` is the message of a JournalReplayError, `damaged` stands for a DamagedStartError; `fault` is any other error. */
export type ReplayReply = { readonly call: number } & (
  | { readonly result: unknown }
  | { readonly invalid: string }
  | { readonly damaged: { readonly part: keyof ReplayStart; readonly message: string } }
  | { readonly fault: unknown }
);

/** The memory of those that own all of theirs. Others share it, for instance with Buffer's pool, and are copied instead. */
export function transferable(...parts: readonly (Uint8Array | null | undefined)[]): ArrayBuffer[] {
  return parts.flatMap((part) => {
    const owns = part && part.byteLength >= smallestOwned && part.byteLength === part.buffer.byteLength;
    return owns && part.buffer instanceof ArrayBuffer ? [part.buffer] : [];
  });
}

/** Above the size of Buffer's pool, and below it not worth the trouble. */
const smallestOwned = 256 * 1024;
