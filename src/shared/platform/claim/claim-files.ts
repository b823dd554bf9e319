import { randomUUID } from 'node:crypto';
import { linkSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import Type from 'typebox';
import { Value } from 'typebox/value';
import { codeOf } from '../errors/causes.ts';
import { syncPath } from '../files/durable-files.ts';
import { ProcessIdentity } from './process-identity.ts';

export const ClaimOwner = Type.Intersect([
  ProcessIdentity,
  Type.Object({
    id: Type.String(),
    /** The file that the owner has locked; null if it could not lock one. */
    lock: Type.Union([Type.String(), Type.Null()]),
    isReleased: Type.Boolean(),
  }),
]);
export type ClaimOwner = Type.Static<typeof ClaimOwner>;

export interface Claim {
  readonly number: number;
  readonly text: string;
  /** Null if the claim cannot be read. */
  readonly owner: ClaimOwner | null;
}

/**
 * Claims are files with increasing numbers, of which the highest is effective. To make a claim, a process creates the file with the next
 * number, in which only one process can succeed. The file never changes: no process overwrites the claim of another, however long it sleeps
 * between two steps.
 */
export class ClaimFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  readLast(): Claim | null {
    for (;;) {
      const number = this.#numbers().at(-1);
      if (number === undefined) return null;
      const text = this.readText(number);
      // Otherwise, a later claim has replaced this one in the meantime.
      if (text !== null) return { number, text, owner: parseOwner(text) };
    }
  }

  readText(number: number): string | null {
    return readOrNull(this.#file(number));
  }

  /** The claim is durable, with its whole text at once. Returns false if another process has created it, or a later one. */
  create(number: number, owner: ClaimOwner): boolean {
    const temporary = path.join(this.#folder, `new-${randomUUID()}`);
    try {
      writeFileSync(temporary, `${JSON.stringify(owner)}\n`, { flag: 'wx', mode: 0o640 });
      syncPath(temporary);
      linkSync(temporary, this.#file(number));
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false;
      throw error;
    } finally {
      rmSync(temporary, { force: true });
    }
    syncPath(this.#folder);
    if (this.#numbers().at(-1) === number) return true;
    // The number was free again, because other processes have started and ended since the check.
    rmSync(this.#file(number), { force: true });
    return false;
  }

  removeBefore(number: number): void {
    for (const name of this.#names()) {
      const of = numberOf(name);
      if (of !== null && of < number) rmSync(path.join(this.#folder, name), { force: true });
    }
  }

  /** The file in which the owner shows that it is alive. */
  beatFile(number: number): string {
    return `${this.#file(number)}.beat`;
  }

  readBeat(number: number): string | null {
    return readOrNull(this.beatFile(number));
  }

  #numbers(): number[] {
    return this.#names()
      .flatMap((name) => (name.endsWith('.beat') ? [] : (numberOf(name) ?? [])))
      .sort((one, other) => one - other);
  }

  /** The folder may have been removed. */
  #names(): string[] {
    try {
      return readdirSync(this.#folder);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return [];
      throw error;
    }
  }

  #file(number: number): string {
    return path.join(this.#folder, String(number).padStart(8, '0'));
  }
}

function numberOf(name: string): number | null {
  return /^\d{8,15}(\.beat)?$/.test(name) ? Number.parseInt(name, 10) : null;
}

function parseOwner(text: string): ClaimOwner | null {
  try {
    const parsed: unknown = JSON.parse(text);
    return Value.Check(ClaimOwner, parsed) ? parsed : null;
  } catch {
    return null;
  }
}

function readOrNull(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    // ESTALE: another machine has removed the file.
    if (['ENOENT', 'ESTALE'].includes(codeOf(error) ?? '')) return null;
    throw error;
  }
}
