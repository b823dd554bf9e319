import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { pollUntil } from './poll.ts';

/** What the test provider can be made to do at its next operation; keys are explained at `TestCloud.control`. */
export interface CloudControl {
  failCreate?: string[];
  failUpdate?: string[];
  failDelete?: string[];
  failRead?: string[];
  /** The object comes to exist, but its create reports initErrors. */
  partialCreate?: string[];
  /** Delay before the effect: a kill in it finds nothing done. */
  slowMs?: Record<string, number>;
  /** Delay after the effect: a kill in it finds the work done and the engine not told. */
  slowAfterMs?: Record<string, number>;
  /** Delays end with an error when the CLI was interrupted; by default operations finish. */
  abortOnCancel?: boolean;
}

/** A live object of the test provider. */
export interface CloudObject {
  id: string;
  name: string;
  value: string;
  replaceOn: string;
  secretValue: string;
  size: number;
  initialised: boolean;
  revision: number;
}

/** One operation of the test provider. */
export type CloudOperation = 'create' | 'read' | 'update' | 'delete';

/** A line of the provider's log. */
export interface CloudLogEntry {
  time: string;
  op: CloudOperation;
  name: string;
  id: string;
  phase: 'start' | 'done' | 'failed';
}

/** The directory that the test provider treats as its cloud (HOLDFAST_TEST_CLOUD). */
export class TestCloud {
  readonly dir: string;

  constructor(dir: string) {
    this.dir = dir;
  }

  /** Everything that really exists, by id. */
  async objects(): Promise<Map<string, CloudObject>> {
    const names = await namesIn(join(this.dir, 'objects'));
    const all = await Promise.all(names.map((name) => this.#read(join(this.dir, 'objects', name))));
    return new Map(all.map((object) => [object.id, object] as const).sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Changes a live object behind Pulumi's back. */
  async edit(id: string, change: Partial<Omit<CloudObject, 'id'>>): Promise<void> {
    const path = this.#objectPath(id);
    await writeWhole(path, JSON.stringify({ ...(await this.#read(path)), ...change }));
  }

  /** Makes a live object vanish behind Pulumi's back. */
  async remove(id: string): Promise<void> {
    await rm(this.#objectPath(id));
  }

  /**
   * Sets how operations misbehave from now on; `{}` ends it. A key is a resource name, an id, a `value`,
   * `<name>.<operation>`, `*.<operation>` or `*`.
   */
  async control(control: CloudControl): Promise<void> {
    await mkdir(this.dir, { recursive: true });
    await writeWhole(join(this.dir, 'control.json'), JSON.stringify(control));
  }

  /** Waits for an operation on a resource to begin; forget earlier runs with `clearStarted` first. */
  async waitStarted(name: string, op: CloudOperation, timeoutMs = 60_000): Promise<void> {
    const path = join(this.dir, 'started', `${fileNameOf(name)}.${op}`);
    await pollUntil(`${op} of ${name} begins`, () => existsSync(path), { timeoutMs });
  }

  /** Forgets which operations have begun. */
  async clearStarted(): Promise<void> {
    await rm(join(this.dir, 'started'), { recursive: true, force: true });
  }

  /** Every operation so far, in order. */
  async log(): Promise<CloudLogEntry[]> {
    const path = join(this.dir, 'log.jsonl');
    if (!existsSync(path)) return [];
    const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as CloudLogEntry);
  }

  async #read(path: string): Promise<CloudObject> {
    return JSON.parse(await readFile(path, 'utf8')) as CloudObject;
  }

  #objectPath(id: string): string {
    return join(this.dir, 'objects', `${fileNameOf(id)}.json`);
  }
}

async function namesIn(dir: string): Promise<string[]> {
  return existsSync(dir) ? await readdir(dir) : [];
}

/** As the provider's fileName does it: all but letters, digits and `-_.~` as %XX. */
function fileNameOf(name: string): string {
  const hex = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(name).replace(/[!'()*]/g, hex);
}

/** The provider may read at any moment and must never meet half a file. */
async function writeWhole(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}
