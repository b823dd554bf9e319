import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { until } from './until.ts';

/** `TestCloud.control` explains keys and list items. */
export interface CloudControl {
  failCreate?: string[];
  failUpdate?: string[];
  failDelete?: string[];
  failRead?: string[];
  /** The object is created, but the create reports initErrors. */
  partialCreate?: string[];
  /** Delay before the effect: if the provider is killed during it, nothing has been done. */
  slowMs?: Record<string, number>;
  /** Delay after the effect: if the provider is killed during it, the work is done, but the engine does not know. */
  slowAfterMs?: Record<string, number>;
  /** Delays end with an error if the CLI is interrupted. By default, operations finish. */
  abortOnCancel?: boolean;
}

/** An existing object of the test provider. */
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

/** HOLDFAST_TEST_CLOUD names this directory. */
export class TestCloud {
  readonly dir: string;

  constructor(dir: string) {
    this.dir = dir;
  }

  /** Returns all objects that actually exist, by id. */
  async objects(): Promise<Map<string, CloudObject>> {
    const names = await namesIn(join(this.dir, 'objects'));
    const all = await Promise.all(names.map((name) => this.#read(join(this.dir, 'objects', name))));
    return new Map(all.map((object) => [object.id, object] as const).sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Changes an object without Pulumi's knowledge. */
  async edit(id: string, change: Partial<Omit<CloudObject, 'id'>>): Promise<void> {
    const path = this.#objectPath(id);
    await writeAtomically(path, JSON.stringify({ ...(await this.#read(path)), ...change }));
  }

  /** Deletes an object without Pulumi's knowledge. */
  async remove(id: string): Promise<void> {
    await rm(this.#objectPath(id));
  }

  /**
   * Sets how operations fail from now on; `{}` resets it. A running delay ends if it is shortened. A key is a resource name, an id, a
   * `value`, `<name>.<operation>`, `*.<operation>` or `*`.
   */
  async control(control: CloudControl): Promise<void> {
    await mkdir(this.dir, { recursive: true });
    await writeAtomically(join(this.dir, 'control.json'), JSON.stringify(control));
  }

  /** Call `clearStarted` first to ignore earlier runs. */
  async waitStarted(name: string, op: CloudOperation, timeoutMs = 120_000): Promise<void> {
    const path = join(this.dir, 'started', `${fileNameOf(name)}.${op}`);
    await until(() => existsSync(path), `${op} of ${name} begins`, { timeoutMs });
  }

  /** Makes `waitStarted` ignore earlier operations. */
  async clearStarted(): Promise<void> {
    await rm(join(this.dir, 'started'), { recursive: true, force: true });
  }

  /** Returns all operations so far, in order. */
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

/** Same as the provider's `fileName`: everything except letters, digits and `-_.~` becomes %XX. */
function fileNameOf(name: string): string {
  const hex = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(name).replace(/[!'()*]/g, hex);
}

/** The provider may read at any moment and must never see a partial file. */
async function writeAtomically(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}
