import { sha256 } from './documents.ts';

/** Outcomes of the writes to one stack whose state consists of whole documents. */
export class DocumentLedger {
  /** Hash of the last acknowledged state; null while there is none. */
  #acknowledged: string | null = null;
  /** Hashes of later states whose outcome is unknown. */
  #unknown = new Set<string>();
  /** For completed updates: the states that `export/{version}` may return. */
  readonly versions: { version: number; mayBe: ReadonlySet<string> }[] = [];
  acknowledgedWrites = 0;

  attempt(document: Buffer): void {
    this.#unknown.add(sha256(document));
  }

  acknowledge(document: Buffer): void {
    this.#acknowledged = sha256(document);
    this.#unknown = new Set();
    this.acknowledgedWrites++;
  }

  keepVersion(version: number): void {
    this.versions.push({ version, mayBe: this.mayBe() });
  }

  /** The possible states of the stack: the last acknowledged one, or one that was sent later. */
  mayBe(): ReadonlySet<string> {
    return new Set([...(this.#acknowledged === null ? [] : [this.#acknowledged]), ...this.#unknown]);
  }

  get isEmpty(): boolean {
    return this.#acknowledged === null;
  }
}

/** Outcomes of journal entries, each of which adds a resource with a unique name. */
export class JournalLedger {
  readonly acknowledged = new Set<string>();
  readonly attempted = new Set<string>();
}

/** Sequence numbers of acknowledged events, by update. */
export type EventLedger = Map<string, number[]>;
