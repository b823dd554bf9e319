import { InvalidRequestError, PayloadTooLargeError } from '../../platform/errors/errors.ts';
import { JsonScanner, JsonSyntaxError } from '../../platform/json/json-scanner.ts';
import { denseSliceBytes, scanInSlices } from '../../platform/slices/slices.ts';

/**
 * An entry of a newer version is refused: leaving it out could change what later entries refer to. Version 2 adds migrations of the state.
 */
export const newestJournalVersion = 2;

export interface JournalEntryText {
  readonly sequenceId: number;
  /** Byte for byte as the CLI sent it. */
  readonly text: Buffer;
}

export interface BatchEntry extends JournalEntryText {
  /** Announces the beginning of a step. The engine waits for the response before it calls the provider. */
  readonly isBegin: boolean;
  /** Later steps may refer to resources that the migration names. */
  readonly isMigration: boolean;
}

/** Change limits depend on these entries. */
export function isLimitable({ isBegin, isMigration }: BatchEntry): boolean {
  return isBegin || isMigration;
}

/** `index` is that of the invalid entry; null if the body as a whole is invalid. */
export class InvalidJournalBatchError extends InvalidRequestError {
  override readonly name = 'InvalidJournalBatchError';
  readonly index: number | null;

  constructor(message: string, index: number | null, options: ErrorOptions = {}) {
    super(index === null ? message : `entries[${index}]: ${message}`, options);
    this.index = index;
  }
}

/**
 * The CLI sends batches of 100 entries by default and halves a batch that gets a 413 (httpstate/journal/snapshot.go). The first limit
 * exists because a small body can hold millions of entries, the second because entries can have any size. A single entry, which may contain
 * a whole snapshot, is exempt from the second limit.
 */
const maxEntries = 10_000;
const maxSharedBytes = 16 * 1024 * 1024;
const positiveInteger = /^[1-9][0-9]*$/;
const entryVersion = /^(?:null|[0-9]{1,9})$/;
const entryKind = /^(?:0|[1-9][0-9]{0,8})$/;

/**
 * The entries of `{"entries": [...]}`, in order and including duplicates. Reads only `sequenceID`, `kind` and `version`, so that kinds and
 * fields of future CLIs pass through. The texts share memory with `body`. Throws InvalidJournalBatchError and PayloadTooLargeError.
 */
export async function splitJournalBatch(body: Buffer): Promise<BatchEntry[]> {
  let entries: BatchEntry[] | null = null;
  let found: BatchEntry[] = [];
  let sequenceId: number | null = null;
  let kindDigits: string | null = null;
  const scanner = new JsonScanner({
    reportDepth: 3,
    onValue: (path, kind, start, end) => {
      if (path[0] !== 'entries') return;
      if (path.length === 1) {
        if (kind !== 'array') throw new InvalidJournalBatchError('"entries" must be an array', null);
        // If a member is repeated, the last one wins.
        entries = found;
        found = [];
      } else if (path.length === 2) {
        if (kind !== 'object') throw new InvalidJournalBatchError('must be an object', found.length);
        if (sequenceId === null) throw new InvalidJournalBatchError('"sequenceID" is missing', found.length);
        if (kindDigits === null) throw new InvalidJournalBatchError('"kind" is missing', found.length);
        if (found.length === maxEntries) throw new PayloadTooLargeError(`A batch has at most ${maxEntries} entries`);
        if (found.length === 1 && body.length > maxSharedBytes)
          throw new PayloadTooLargeError(`A batch of several entries has at most ${maxSharedBytes} bytes`);
        const text = body.subarray(start, end);
        found.push({ sequenceId, isBegin: kindDigits === '0', isMigration: kindDigits === '10', text });
        sequenceId = null;
        kindDigits = null;
      } else if (path[2] === 'sequenceID') {
        const digits = kind === 'number' ? body.toString('latin1', start, end) : '';
        sequenceId = positiveInteger.test(digits) ? Number(digits) : 0;
        if (sequenceId === 0 || !Number.isSafeInteger(sequenceId)) {
          throw new InvalidJournalBatchError('"sequenceID" must be an integer of at least 1', found.length);
        }
      } else if (path[2] === 'version') {
        const digits = body.toString('latin1', start, Math.min(end, start + 16));
        if (!entryVersion.test(digits) || Number(digits) > newestJournalVersion) {
          const message = `"version" must be a whole number up to ${newestJournalVersion}, the newest that this server knows`;
          throw new InvalidJournalBatchError(message, found.length);
        }
      } else if (path[2] === 'kind') {
        kindDigits = kind === 'number' ? body.toString('latin1', start, Math.min(end, start + 16)) : '';
        if (!entryKind.test(kindDigits))
          throw new InvalidJournalBatchError('"kind" must be a whole number', found.length);
      }
    },
  });
  try {
    await scanInSlices(scanner, body, denseSliceBytes);
    scanner.end();
  } catch (error) {
    if (error instanceof JsonSyntaxError) {
      throw new InvalidJournalBatchError(`Body is not JSON: ${error.message}`, null, { cause: error });
    }
    throw error;
  }
  if (entries === null) throw new InvalidJournalBatchError('"entries" is missing', null);
  return entries;
}
