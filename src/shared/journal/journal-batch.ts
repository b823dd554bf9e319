import { InvalidRequestError, PayloadTooLargeError } from '../platform/errors/errors.ts';
import { JsonScanner, JsonSyntaxError } from '../platform/json/json-scanner.ts';
import { scanInTurns } from '../platform/turns/turns.ts';

/** One journal entry as the CLI sent it. */
export interface JournalEntryText {
  readonly sequenceId: number;
  /** The entry's JSON, byte for byte. */
  readonly text: Buffer;
}

/** The body is no journal batch. `index` is the entry at fault, or null when the body as a whole is. */
export class InvalidJournalBatchError extends InvalidRequestError {
  override readonly name = 'InvalidJournalBatchError';
  readonly index: number | null;

  constructor(message: string, index: number | null, options: ErrorOptions = {}) {
    super(index === null ? message : `entries[${index}]: ${message}`, options);
    this.index = index;
  }
}

/**
 * The CLI sends 100 unless told otherwise, and halves a batch that gets a 413 (httpstate/journal/snapshot.go). A small body can
 * hold millions of entries, and 100 entries of any size; one alone, which may be a whole snapshot, is not held to the second limit.
 */
const maxEntries = 10_000;
const maxSharedBytes = 16 * 1024 * 1024;
const positiveInteger = /^[1-9][0-9]*$/;
const entryKind = /^(?:0|[1-9][0-9]{0,8})$/;

/**
 * Cuts the body `{"entries": [...]}` into the entries it carries, in their order, repeated ones included. Of an entry
 * only `sequenceID` and `kind` are read: kinds and fields of later CLIs pass through. The texts share memory with `body`.
 */
export async function splitJournalBatch(body: Buffer): Promise<JournalEntryText[]> {
  let entries: JournalEntryText[] | null = null;
  let found: JournalEntryText[] = [];
  let sequenceId: number | null = null;
  let hasKind = false;
  const scanner = new JsonScanner({
    reportDepth: 3,
    onValue: (path, kind, start, end) => {
      if (path[0] !== 'entries') return;
      if (path.length === 1) {
        if (kind !== 'array') throw new InvalidJournalBatchError('"entries" must be an array', null);
        // Of a repeated member the last counts.
        entries = found;
        found = [];
      } else if (path.length === 2) {
        if (kind !== 'object') throw new InvalidJournalBatchError('must be an object', found.length);
        if (sequenceId === null) throw new InvalidJournalBatchError('"sequenceID" is missing', found.length);
        if (!hasKind) throw new InvalidJournalBatchError('"kind" is missing', found.length);
        if (found.length === maxEntries) throw new PayloadTooLargeError(`A batch has at most ${maxEntries} entries`);
        if (found.length === 1 && body.length > maxSharedBytes)
          throw new PayloadTooLargeError(`A batch of several entries has at most ${maxSharedBytes} bytes`);
        found.push({ sequenceId, text: body.subarray(start, end) });
        sequenceId = null;
        hasKind = false;
      } else if (path[2] === 'sequenceID') {
        const digits = kind === 'number' ? body.toString('latin1', start, end) : '';
        sequenceId = positiveInteger.test(digits) ? Number(digits) : 0;
        if (sequenceId === 0 || !Number.isSafeInteger(sequenceId)) {
          throw new InvalidJournalBatchError('"sequenceID" must be an integer of at least 1', found.length);
        }
      } else if (path[2] === 'kind') {
        hasKind = kind === 'number' && entryKind.test(body.toString('latin1', start, Math.min(end, start + 16)));
        if (!hasKind) throw new InvalidJournalBatchError('"kind" must be a whole number', found.length);
      }
    },
  });
  try {
    await scanInTurns(scanner, body);
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
